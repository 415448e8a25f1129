using Kahuna.Benchmark.Options;
using Kahuna.Client;
using Kahuna.Client.Outcomes;

namespace Kahuna.Benchmark.Targets.Sdk;

/// <summary>
/// A Kahuna cluster through the public client, as an application uses it; for <c>-c embedded</c> it starts the cluster
/// first. Owned by the run.
/// </summary>
internal sealed class KahunaTarget(BenchOptions options) : ITarget
{
    /// <summary>What the client accepts at most; more workers than that wait inside of it.</summary>
    private const int InFlightMax = 16 * 1024;

    private readonly List<KahunaClient> _clients = [];
    private EmbeddedNodes? _nodes;

    /// <summary>
    /// How long the cluster may take to answer. Embedded nodes start together with this process, and share its machine.
    /// </summary>
    private TimeSpan ReachMax => _nodes is null ? options.ConnectTimeout : EmbeddedNodes.StartMax;

    public async Task<TargetDescription> ConnectAsync(CancellationToken cancellationToken)
    {
        string endpoints = string.Join(',', options.Source.Endpoints.Select(endpoint => $"https://{endpoint.Authority}"));
        if (options.Source.EmbeddedNodes > 0)
        {
            _nodes = await EmbeddedNodes.StartAsync(
                options.Source.EmbeddedNodes, options.Partitions, cancellationToken).ConfigureAwait(false);
            endpoints = _nodes.Endpoints;
        }

        try
        {
            using CancellationTokenSource limit = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken);
            limit.CancelAfter(ReachMax);
            ClusterDescription description = await ConnectAsync(endpoints, limit.Token).ConfigureAwait(false);
            string[] nodes = endpoints.Split(',');
            string? store = await ServerStore.ReadAsync(
                nodes.Select(static node => new Uri(node)),
                options.IsInsecure,
                TimeProvider.System,
                options.Credentials is { } credentials
                    ? await credentials.Source.ReadAsync(cancellationToken).ConfigureAwait(false)
                    : null,
                cancellationToken).ConfigureAwait(false);
            return new TargetDescription("kahuna", description.ServerVersion, nodes) { Store = store };
        }
        catch (OperationCanceledException) when (!cancellationToken.IsCancellationRequested)
        {
            throw new TargetException(
                $"The cluster at {endpoints} cannot be reached within {ReachMax.TotalSeconds:G} "
                    + $"s{(_nodes is null ? " (--connect-timeout)" : "")}.");
        }
        catch (KahunaException failure)
        {
            throw new TargetException($"The cluster at {endpoints} cannot be reached: {failure.Message}", failure);
        }
        catch (ArgumentException failure)
        {
            throw new TargetException(failure.Message, failure);
        }
    }

    public ITargetSession OpenSession(int worker) => new KahunaManyKeySession(_clients[worker % _clients.Count]);

    public async ValueTask DisposeAsync()
    {
        foreach (KahunaClient client in _clients)
        {
            await client.DisposeAsync().ConfigureAwait(false);
        }

        if (_nodes is not null)
        {
            await _nodes.DisposeAsync().ConfigureAwait(false);
        }
    }

    private async Task<ClusterDescription> ConnectAsync(string endpoints, CancellationToken cancellationToken)
    {
        // One client is what an application has; it batches best when all workers share it.
        int count = Math.Min(Math.Max(options.Connections, 1), options.Concurrency);
        ClusterDescription? description = null;
        for (int i = 0; i < count; i++)
        {
            KahunaClient client = KahunaClient.Connect(endpoints, Configure);
            _clients.Add(client);
            description ??= await client.DescribeAsync(cancellationToken).ConfigureAwait(false);
        }

        return description!;
    }

    private void Configure(KahunaClientOptions client)
    {
        client.Insecure = options.IsInsecure;
        client.Credentials = options.Credentials;
        client.Durability = options.Durability == BenchOptions.Ephemeral ? Durability.Ephemeral : Durability.Persistent;
        client.RequestTimeout = options.Timeout;
        client.ConnectTimeout = ReachMax;
        client.MaxInFlight = Math.Clamp(options.Concurrency, client.MaxInFlight, InFlightMax);

        // The workers never block, so that a reply's reader may run them: one hand-over between threads less per batch.
        client.AllowSynchronousContinuations = true;
    }
}
