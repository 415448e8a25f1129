using Kahuna.Client;

namespace Kahuna.Tests.Cluster.Soak;

/// <summary>The clients of a run and their callers. Owned by one run.</summary>
internal sealed class SoakLoad : IAsyncDisposable
{
    /// <summary>Clients get them in turn. The shorter ones end writes with an unknown outcome whenever a node is stopped.</summary>
    private static readonly int[] s_requestTimeoutsMs = [300, 1_000, 3_000, 10_000];

    private readonly List<KahunaClient> _clients = [];
    private readonly List<SoakCaller> _callers = [];
    private readonly CancellationTokenSource _stop = new();
    private readonly SoakClock _clock;
    private readonly Task[] _running;

    public SoakLoad(ProcessCluster cluster, SoakOptions options, SoakRecord record)
    {
        _clock = record.Clock;
        for (int i = 0; i < options.Clients; i++)
        {
            KahunaClient client = Connect(cluster, i);
            _clients.Add(client);
            _callers.AddRange(Enumerable.Range(i * options.CallersPerClient, options.CallersPerClient).Select(process => new SoakCaller(process, client, options, record)));
        }

        _running = [.. _callers.Select(caller => Task.Run(() => caller.RunAsync(_stop.Token)))];
    }

    /// <summary>Ends as soon as a caller does, which only happens when something is wrong.</summary>
    public Task Broken => Task.WhenAny(_running).Unwrap();

    /// <summary>Waits until every caller has had an answer to an operation that it called after this moment.</summary>
    public Task GetThroughAsync(TimeSpan within)
    {
        long fromNs = _clock.NowNs;
        return Eventually.TrueAsync(within, "every caller gets an answer", async () =>
        {
            foreach (Task broken in _running.Where(static caller => caller.IsFaulted))
            {
                await broken;
            }

            return _callers.All(caller => caller.AnsweredCallNs >= fromNs);
        });
    }

    /// <summary>No caller begins another operation, and all have come back.</summary>
    public async Task StopAsync(TimeSpan within)
    {
        await _stop.CancelAsync();
        await Task.WhenAll(_running).WaitAsync(within);
    }

    public async ValueTask DisposeAsync()
    {
        await _stop.CancelAsync();
        foreach (KahunaClient client in _clients)
        {
            await client.DisposeAsync();
        }

        _stop.Dispose();
    }

    /// <summary>Each begins with another node, and trusts the cluster's own authority.</summary>
    private static KahunaClient Connect(ProcessCluster cluster, int number)
    {
        KahunaClientOptions options = new()
        {
            TrustedCaFile = Path.Combine(cluster.CertificateDirectory, "ca.pem"),
            RequestTimeout = TimeSpan.FromMilliseconds(s_requestTimeoutsMs[number % s_requestTimeoutsMs.Length]),
            ConnectTimeout = TimeSpan.FromSeconds(1),
        };
        for (int i = 0; i < cluster.Nodes.Count; i++)
        {
            options.Endpoints.Add(new Uri(cluster.Nodes[(i + number) % cluster.Nodes.Count].Url));
        }

        return new KahunaClient(options);
    }
}
