using Kahuna.Client;
using Kahuna.Client.Connection;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Logging.Abstractions;

namespace Kahuna.Tests.Client;

/// <summary>Nodes in memory, and clients that reach them. Owned by one test.</summary>
internal sealed class FakeCluster : IFrameChannel
{
    public FakeCluster(int nodes = 1, int partitions = 1)
    {
        Nodes = [.. Enumerable.Range(1, nodes).Select(id => new FakeNode(this, id, new Uri($"https://node{id}:8082")))];
        Leaders = [.. Enumerable.Repeat((1, 1UL), partitions)];
    }

    public FakeNode[] Nodes { get; }

    /// <summary>What the nodes say about the leaders.</summary>
    public (int Leader, ulong Term)[] Leaders { get; set; }

    /// <summary>Where clients log.</summary>
    public ILoggerFactory Loggers { get; set; } = NullLoggerFactory.Instance;

    /// <summary>Where clients run what they do; null: on the pool.</summary>
    public SynchronizationContext? Context { get; set; }

    public FakeNode this[int id] => Nodes[id - 1];

    /// <summary>
    /// A client that knows only the first node at the beginning. Unless the test moves the clock, no node is silent for
    /// too long: the test may be slow.
    /// </summary>
    public KahunaClient Client(Action<KahunaClientOptions>? configure = null, params int[] seeds)
    {
        KahunaClientOptions options = new() { RequestTimeout = TimeSpan.FromMinutes(5) };
        foreach (int id in seeds.Length == 0 ? [1] : seeds)
        {
            options.Endpoints.Add(this[id].Endpoint);
        }

        configure?.Invoke(options);
        ConnectionPorts ports = new(this, options.TimeProvider, Context, Seed: 7);
        return new KahunaClient(
            options, options.TimeProvider is ManualTime ? ports : ports with { Patience = Wait.Longest }, Loggers);
    }

    /// <summary>A client that is connected to every node.</summary>
    public async Task<KahunaClient> ConnectedAsync(Action<KahunaClientOptions>? configure = null)
    {
        KahunaClient client = Client(configure);
        await Wait.UntilAsync(
            async () => (await client.DescribeAsync()).Nodes.All(node => node.IsConnected || this[node.Id].IsDown));
        return client;
    }

    /// <summary>The same, with a clock that the test moves and a deadline for each call.</summary>
    public Task<KahunaClient> ConnectedAsync(ManualTime time, TimeSpan requestTimeout) => ConnectedAsync(options =>
    {
        options.TimeProvider = time;
        options.RequestTimeout = requestTimeout;
    });

    /// <inheritdoc/>
    public ValueTask<IFrameStream> OpenAsync(Uri endpoint, string? authorization, CancellationToken ct)
    {
        FakeNode node = Nodes.Single(node => node.Endpoint == endpoint);
        Interlocked.Increment(ref node.Attempts);
        node.Shown.Enqueue(authorization);
        if (node.Admit(authorization) is { } refusal)
        {
            throw new StreamRefusedException(refusal);
        }

        return node.IsUntrusted
            ? throw new HttpRequestException(
                "no TLS",
                new UntrustedServerException(
                    $"the certificate of {endpoint.Authority} is not trusted by TrustedCaFile \"ca.pem\""))
            : node.IsDown ? throw new IOException("Connection refused") : new ValueTask<IFrameStream>(node.Accept());
    }

    /// <inheritdoc/>
    public ValueTask<IFrameStream> OpenWatchAsync(Uri endpoint, string? authorization, CancellationToken ct)
    {
        FakeNode node = Nodes.Single(node => node.Endpoint == endpoint);
        Interlocked.Increment(ref node.WatchAttempts);
        node.ShownForWatches.Enqueue(authorization);
        return node.IsDown
            ? throw new IOException("Connection refused")
            : node.AdmitWatches(authorization) is { } refusal ? throw new StreamRefusedException(refusal)
            : new ValueTask<IFrameStream>(node.AcceptWatches());
    }

    /// <inheritdoc/>
    public ValueTask<CallAnswer> CallAsync(
        Uri endpoint, UnaryCall call, string? authorization, CancellationToken ct) =>
        new(Nodes.Single(node => node.Endpoint == endpoint).OnCall(call, authorization));

    /// <inheritdoc/>
    public ValueTask DisposeAsync() => ValueTask.CompletedTask;
}
