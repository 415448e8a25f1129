using System.Diagnostics;
using Kahuna.Tests.Tools.Load;
using Kahuna.Tests.Tools.Processes;

namespace Kahuna.Tests.Tools.Scale;

/// <summary>
/// The three nodes of scripts/scale.sh with a known number of keys, and load on them. Owned by
/// <see cref="ScaleCommand"/>; one thread.
/// </summary>
/// <param name="run">Whose processes they are.</param>
/// <param name="number">Clusters beside each other differ by it.</param>
internal sealed class ScaleCluster(Measurement run, int number)
{
    private readonly ServerCluster _servers = new(run, $"cluster{number}");

    public IReadOnlyList<ServerNode> Nodes => _servers.Nodes;

    public ServerNode Leader => _servers.Leader();

    public IReadOnlyList<ServerNode> Followers => _servers.Followers;

    public bool DigestsEqual => _servers.DigestsEqual();

    /// <summary>How many keys there are.</summary>
    public int Filled { get; private set; }

    private double ProcessorSeconds => Nodes.Sum(static node => node.ProcessorSeconds);

    /// <summary>New nodes without a key.</summary>
    public void Fresh()
    {
        _servers.Clean();
        Filled = 0;
        _servers.Up();
    }

    public void Restart(params string[] options) => _servers.Restart(options);

    public void Clean() => _servers.Clean();

    /// <summary>A cluster with these keys and no other: the present one, when it has them.</summary>
    public void Hold(int keys)
    {
        if (Filled != keys)
        {
            Fresh();
            Fill(keys);
        }
    }

    /// <summary>Writes each key once. Seconds that it took.</summary>
    public double Fill(int keys)
    {
        run.Say($"filling {keys:N0} keys");
        Stopwatch took = Stopwatch.StartNew();
        Filled = keys;
        Load("set", 64, 1, warmup: 0, seed: keys);
        long found = Leader.RequireStatus().Partitions.Sum(static partition => partition.Keys);
        return found == keys ? took.Elapsed.TotalSeconds
            : throw new MeasureException(
                $"there are {found:N0} keys instead of {keys:N0}; are the nodes' counts of keys right?");
    }

    /// <summary>
    /// A fresh process compiles its code while it serves its first seconds; that is no operation's cost.
    /// </summary>
    public void Heat()
    {
        Load("set", 256, 5, warmup: 0);
        Load("get", 256, 2, warmup: 0);
    }

    public LoadReport Load(
        string workload, int workers, int seconds, int warmup = 2, int seed = 0, Action? tick = null,
        Func<bool>? until = null)
    {
        using LoadGenerator load = new(run, new LoadPlan(_servers.Endpoints, workload, workers, seconds)
        {
            Warmup = warmup,
            KeySpace = Filled,
            More = ["--seed-keys", $"{seed}"],
            MustSucceed = false,
        });
        if (until is not null)
        {
            load.AwaitMeasurement();
        }

        return load.End(tick, until);
    }

    public ScalePoint Measure(string workload, int workers, int seconds, Func<bool>? until = null)
    {
        List<(DateTimeOffset Time, double Used)> samples = [];
        LoadReport report = Load(
            workload, workers, seconds, tick: () => samples.Add((DateTimeOffset.UtcNow, ProcessorSeconds)),
            until: until);
        LoadRow row = report.Aggregate;
        DateTimeOffset begin = report.Mode.StartedAt;
        (DateTimeOffset Time, double Used)[] inside =
            [.. samples.Where(sample => sample.Time >= begin && sample.Time <= begin.AddSeconds(report.ElapsedSec))];
        double? processorUs = inside.Length < 2 || row.Rps <= 0 ? null
            : (inside[^1].Used - inside[0].Used) / (inside[^1].Time - inside[0].Time).TotalSeconds / row.Rps * 1e6;
        return new ScalePoint(
            row.Rps, row.P50Ms, row.P99Ms, row.P999Ms, row.MaxMs, report.ElapsedSec, row.Failed + row.Misses,
            processorUs);
    }

    /// <summary>
    /// Waits until the nodes have done what load left behind, the storing of states above all: until they use less than
    /// a tenth of one processor.
    /// </summary>
    public void Settle()
    {
        run.Sleep(1);
        (long time, double used) = (0, 0);
        run.WaitFor(300, "the nodes do not come to rest", () =>
        {
            (long beginTime, double before) = (time, used);
            (time, used) = (Stopwatch.GetTimestamp(), ProcessorSeconds);
            return beginTime != 0 && (used - before) / Stopwatch.GetElapsedTime(beginTime, time).TotalSeconds < 0.1;
        }, 1);
    }
}
