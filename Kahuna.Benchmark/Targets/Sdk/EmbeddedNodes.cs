using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Options;

namespace Kahuna.Benchmark.Targets.Sdk;

/// <summary>
/// The cluster of <c>-c embedded</c>: real nodes of Kahuna.Server inside of this process, on loopback endpoints with
/// TLS, with data in a temporary directory that goes with them. The only place that knows the server. Owned by the
/// target.
/// </summary>
internal sealed class EmbeddedNodes : IAsyncDisposable
{
    /// <summary>
    /// Nodes of one process find each other in a second or two, and answer; on a busy machine it may take a minute. One
    /// that needs longer than this cannot run them.
    /// </summary>
    public static readonly TimeSpan StartMax = TimeSpan.FromMinutes(5);

    private static readonly TimeSpan s_stopMax = TimeSpan.FromSeconds(15);

    private readonly EmbeddedCluster _cluster;

    private EmbeddedNodes(EmbeddedCluster cluster) => _cluster = cluster;

    /// <summary>Comma-separated.</summary>
    public string Endpoints => _cluster.Endpoints;

    /// <summary>
    /// Starts the nodes and returns when all can serve; throws <see cref="TargetException"/> when they cannot.
    /// </summary>
    /// <param name="nodes">Number of nodes.</param>
    /// <param name="partitionsMin">Partitions, unless the machine has processors for more.</param>
    /// <param name="cancellationToken">Ends the wait, and stops what was started.</param>
    public static async Task<EmbeddedNodes> StartAsync(
        int nodes, int partitionsMin, CancellationToken cancellationToken)
    {
        using CancellationTokenSource limit = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken);
        limit.CancelAfter(StartMax);
        Task<EmbeddedCluster> starting = EmbeddedCluster.StartAsync(
            nodes,
            configure: options => options with
            {
                Partitions = Math.Max(partitionsMin, NodeOptions.PartitionsFor(Environment.ProcessorCount)),
            },
            cancellationToken: limit.Token);
        try
        {
            return new EmbeddedNodes(await starting.WaitAsync(limit.Token).ConfigureAwait(false));
        }
        catch (OperationCanceledException)
        {
            // What was started is stopped again and its data removed, for which it gets a moment.
            await ((Task)starting)
                .WaitAsync(s_stopMax, CancellationToken.None).ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
            cancellationToken.ThrowIfCancellationRequested();
            throw new TargetException(
                $"The embedded cluster of {nodes} did not become ready within {StartMax.TotalSeconds:G} s.");
        }
        catch (Exception failure)
        {
            throw new TargetException($"The embedded cluster cannot start: {failure.Message}", failure);
        }
    }

    public ValueTask DisposeAsync() => _cluster.DisposeAsync();
}
