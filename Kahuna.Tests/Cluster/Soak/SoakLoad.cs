using Kahuna.Client;

namespace Kahuna.Tests.Cluster.Soak;

/// <summary>
/// The ways to the cluster and their callers: clients of the SDK, and for each node some that call this node whatever
/// happens to it. Owned by one run.
/// </summary>
internal sealed class SoakLoad : IAsyncDisposable
{
    /// <summary>
    /// Clients get them in turn. The shorter ones end writes with an unknown outcome whenever a node is stopped.
    /// </summary>
    private static readonly int[] s_requestTimeoutsMs = [300, 1_000, 3_000, 10_000];

    private readonly List<ISoakTarget> _targets = [];
    private readonly List<SoakCaller> _callers = [];
    private readonly CancellationTokenSource _stop = new();
    private readonly SoakClock _clock;
    private readonly Task[] _running;

    public SoakLoad(ProcessCluster cluster, SoakOptions options, SoakRecord record)
    {
        _clock = record.Clock;
        _targets.AddRange(
            Enumerable.Range(0, options.Clients).Select(number => new SdkTarget(Connect(cluster, number))));
        _targets.AddRange(cluster.Nodes.Select(node => new NodeTarget(node, TrustedCaFile(cluster))));
        foreach (ISoakTarget target in _targets)
        {
            int callers = target is SdkTarget ? options.CallersPerClient : options.CallersPerNode;
            _callers.AddRange(Enumerable.Range(_callers.Count, callers).Select(
                process => new SoakCaller(process, target, options, record)));
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
        foreach (ISoakTarget target in _targets)
        {
            await target.DisposeAsync();
        }

        _stop.Dispose();
    }

    private static string TrustedCaFile(ProcessCluster cluster) => Path.Combine(cluster.CertificateDirectory, "ca.pem");

    /// <summary>Each begins with another node, and trusts the cluster's own authority.</summary>
    private static KahunaClient Connect(ProcessCluster cluster, int number)
    {
        KahunaClientOptions options = new()
        {
            TrustedCaFile = TrustedCaFile(cluster),
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
