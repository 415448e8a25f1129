using Kahuna.Server.Hosting;

namespace Kahuna.Benchmark.Targets;

/// <summary>
/// The cluster of <c>-c embedded</c>: real nodes of Kahuna.Server inside of this process, on loopback endpoints with TLS, with data in a
/// temporary directory that goes with them. The only place that knows the server. Owned by the target.
/// </summary>
internal sealed class EmbeddedNodes : IAsyncDisposable
{
    /// <summary>Whether this build has the server's hosting class.</summary>
    public const bool IsAvailable = true;

    private readonly EmbeddedCluster _cluster;

    private EmbeddedNodes(EmbeddedCluster cluster) => _cluster = cluster;

    /// <summary>Comma-separated.</summary>
    public string Endpoints => _cluster.Endpoints;

    /// <exception cref="TargetException">A node cannot start; the message says why.</exception>
    public static async Task<EmbeddedNodes> StartAsync(int nodes, CancellationToken cancellationToken)
    {
        try
        {
            return new EmbeddedNodes(await EmbeddedCluster.StartAsync(nodes, cancellationToken: cancellationToken));
        }
        catch (Exception error) when (error is not OperationCanceledException)
        {
            throw new TargetException($"The embedded cluster cannot start: {error.Message}");
        }
    }

    public ValueTask DisposeAsync() => _cluster.DisposeAsync();
}
