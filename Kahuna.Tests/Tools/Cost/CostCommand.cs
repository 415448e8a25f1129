using System.Diagnostics;
using Kahuna.Tests.Tools.Load;
using Kahuna.Tests.Tools.Processes;

namespace Kahuna.Tests.Tools.Cost;

/// <summary>
/// The measurement of scripts/cost.sh: processor time of a cluster and its client while they work. Stateless.
/// </summary>
internal static class CostCommand
{
    public const string Defaults = "--workload=set --workers=1,64,256 --seconds=5 --keys=10000 --calls=0";

    public static void Run(Measurement run)
    {
        string workload = run.Options.Text("workload");
        int keys = run.Options.Number("keys");
        ServerCluster cluster = new(run, "cluster");
        cluster.Up();
        LoadPlan plan = new(cluster.Endpoints, workload, 64, 5) { Warmup = 1, KeySpace = keys };
        string[] fill = ["--seed-keys", $"{keys}"];
        LoadGenerator.Run(run, plan with { Workload = "set", Seconds = 1, Warmup = 0, More = fill });

        // A fresh process compiles its code while it serves its first seconds; that is no operation's cost.
        LoadGenerator.Run(run, plan);
        LoadGenerator.Run(run, plan with { Workers = 256 });
        int seconds = run.Options.Number("seconds");
        int calls = run.Options.Number("calls");
        if (calls > 0 && !CallCommand.IsThere)
        {
            throw new MeasureException("--calls needs strace, which is not there");
        }

        foreach (int workers in run.Options.Numbers("workers"))
        {
            LoadPlan longer = plan with { Workers = workers, Seconds = seconds + 4, More = ["--seed-keys", "0"] };
            using LoadGenerator load = new(run, longer);
            run.Sleep(4);
            CostSample sample = Sample(run, cluster, load.ProcessId, seconds);
            CostReport.Print(run.Output, $"{workload} at {workers} workers", load.End().Aggregate, sample);
            if (calls > 0)
            {
                using LoadGenerator traced = new(run, longer with { Seconds = 3600 });
                run.Sleep(4);
                CallCommand.Run(
                    run, LeaderFirst(cluster), traced.ProcessId, workload == "get" ? workers : 0, calls);
            }
        }
    }

    private static CostSample Sample(Measurement run, ServerCluster cluster, int bench, double seconds)
    {
        ServerNode[] nodes = LeaderFirst(cluster);
        int[] processes = [bench, .. nodes.Select(static node => node.ProcessId)];
        (ulong entries, long began) = (Entries(nodes[0]), Stopwatch.GetTimestamp());
        Dictionary<string, ThreadUse>[] before =
            [.. processes.Select(static process => ProcFiles.Threads(process, CostReport.KindOf))];
        run.Sleep(seconds);
        (ulong entriesAfter, TimeSpan took) = (Entries(nodes[0]), Stopwatch.GetElapsedTime(began));
        Dictionary<string, ThreadUse>[] used =
        [
            .. processes.Zip(before, static (process, earlier) =>
                ProcFiles.Threads(process, CostReport.KindOf).ToDictionary(
                    static pair => pair.Key, pair => pair.Value - earlier.GetValueOrDefault(pair.Key),
                    StringComparer.Ordinal)),
        ];
        return new CostSample(took.TotalSeconds, entriesAfter - entries, used[0], used[1..]);
    }

    private static ServerNode[] LeaderFirst(ServerCluster cluster) =>
        [.. cluster.Nodes.OrderByDescending(Leads)];

    private static int Leads(ServerNode node) =>
        node.RequireStatus().Partitions.Count(static partition => partition.Role == "leader");

    private static ulong Entries(ServerNode node) =>
        node.RequireStatus().Partitions.Aggregate(0UL, static (sum, partition) => sum + partition.CommitIndex);
}
