using System.Diagnostics;
using System.Text.RegularExpressions;
using Kahuna.Tests.Tools.Processes;

namespace Kahuna.Tests.Tools.Scale;

/// <summary>
/// What sets and gets, memory, disk and a restart cost at several numbers of keys. The sizes have a cluster each, side
/// by side, and are measured in turn, while all others are at rest: a machine that is slow for a minute is slow for
/// all. Stateless.
/// </summary>
internal static partial class KeysSection
{
    /// <summary>How long a node may take until it is back.</summary>
    public const int BackSeconds = 1800;

    private static readonly (string Workload, int Workers)[] s_points =
        [("set", 256), ("get", 256), ("set", 64), ("get", 64)];

    public static KeysResult Measure(Measurement run, ScaleCluster first)
    {
        int[] sizes = [.. run.Options.Numbers("keys").Distinct().Order()];
        ScaleCluster[] clusters = [.. sizes.Select((_, i) => i == 0 ? first : new ScaleCluster(run, i))];
        double[] fillSeconds = [.. sizes.Zip(clusters, static (keys, cluster) =>
        {
            cluster.Fresh();
            double seconds = cluster.Fill(keys);
            cluster.Heat();
            return seconds;
        })];
        int rounds = run.Options.Number("rounds");
        List<ScalePoint>[,] points = MeasureRounds(run, sizes, clusters, rounds);
        SizeResult[] results =
            [.. sizes.Select((keys, i) => Result(run, clusters[i], keys, fillSeconds[i], point => points[i, point]))];
        Array.ForEach(clusters[1..], static cluster => cluster.Clean());
        return new KeysResult(rounds, results);
    }

    /// <summary>What a node said about its partitions while it started.</summary>
    public static string[] ProgressLines(string log) =>
        [.. Progress().Matches(log).Select(static match => match.Value.Trim())];

    private static List<ScalePoint>[,] MeasureRounds(Measurement run, int[] sizes, ScaleCluster[] clusters, int rounds)
    {
        List<ScalePoint>[,] points = new List<ScalePoint>[sizes.Length, s_points.Length];
        int seconds = run.Options.Number("seconds") is > 0 and int asked ? asked : 10;
        for (int round = 0; round < rounds; round++)
        {
            for (int p = 0; p < s_points.Length; p++)
            {
                (string workload, int workers) = s_points[p];
                IEnumerable<int> order = Enumerable.Range(0, sizes.Length);
                foreach (int i in round % 2 == 0 ? order : order.Reverse())
                {
                    Array.ForEach(clusters, static cluster => cluster.Settle());
                    ScalePoint point = clusters[i].Measure(workload, workers, seconds);
                    (points[i, p] ??= []).Add(point);
                    run.Say($"{sizes[i]:N0} keys: {workload} at {workers} workers {point.Rps:N0}/s");
                }
            }
        }

        return points;
    }

    private static SizeResult Result(
        Measurement run, ScaleCluster cluster, int keys, double fillSeconds, Func<int, List<ScalePoint>> points)
    {
        bool equal = cluster.DigestsEqual;
        MemoryUse[] memory =
            [.. cluster.Nodes.Select(static node => node.Memory with { Heap = node.RequireStatus().Gc.HeapBytes })];
        DiskUse[] disk = [.. cluster.Nodes.Select(static node => node.Disk())];
        return new SizeResult
        {
            Keys = keys,
            KeyBytes = SectionResult.KeyLength(keys),
            FillSeconds = fillSeconds,
            Points = [.. s_points.Select((point, i) => new SizePoint(point.Workload, point.Workers, keys, points(i)))],
            StateStore = cluster.Nodes[0].RequireStatus().Storage.StateStore,
            Memory = memory,
            MemoryHighest = new MemoryUse(
                memory.Max(static row => row.Resident), memory.Max(static row => row.Anonymous),
                memory.Max(static row => row.Highest), memory.Max(static row => row.Heap)),
            DiskHighest = new DiskUse(disk.Max(static row => row.Log), disk.Max(static row => row.State)),
            Restart = RestartFollower(run, cluster),
            DigestsEqual = equal && cluster.DigestsEqual,
        };
    }

    private static RestartResult RestartFollower(Measurement run, ScaleCluster cluster)
    {
        ServerNode node = cluster.Followers[0];
        long position = node.LogPosition;
        node.Kill();
        Stopwatch took = Stopwatch.StartNew();
        node.Start();
        node.Await(BackSeconds, "is not back", () => node.IsReady);
        double seconds = took.Elapsed.TotalSeconds;
        run.Say($"node {node.Number} was ready {seconds:F1} s after its start");
        return new RestartResult(seconds, ProgressLines(node.LogSince(position)));
    }

    [GeneratedRegex(@"Partition \d+: .*|.*[Ss]napshot.*")]
    private static partial Regex Progress();
}
