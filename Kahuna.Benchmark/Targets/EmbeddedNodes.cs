namespace Kahuna.Benchmark.Targets;

/// <summary>
/// The cluster of <c>-c embedded</c>: real nodes of Kahuna.Server inside of this process, on loopback endpoints with TLS, with data in a
/// temporary directory that goes with them. The only place that knows the server. Owned by the target.
/// </summary>
internal sealed class EmbeddedNodes : IAsyncDisposable
{
    /// <summary>Whether this build has the server's hosting class.</summary>
    public const bool IsAvailable = false;

    private EmbeddedNodes(string endpoints) => Endpoints = endpoints;

    /// <summary>Comma-separated.</summary>
    public string Endpoints { get; }

    public static Task<EmbeddedNodes> StartAsync(int nodes, CancellationToken cancellationToken) =>
        throw new TargetException($"-c embedded:{nodes} is not available in this build.");

    public ValueTask DisposeAsync() => ValueTask.CompletedTask;
}
