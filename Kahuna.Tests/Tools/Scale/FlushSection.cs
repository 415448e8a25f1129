namespace Kahuna.Tests.Tools.Scale;

/// <summary>
/// Sets while states are stored and the log is cut, against sets without. All variants run on the same keys, each in
/// new processes on the data that the one before left: what a node has to load, and what it knows of its states, is the
/// same for all. Stateless.
/// </summary>
internal static class FlushSection
{
    /// <summary>
    /// Options by the name of the variant. What is kept of the log decides when states are stored: each time a quarter
    /// of it has gathered.
    /// </summary>
    private static readonly (string Name, string[] Options)[] s_variants =
    [
        (FlushResult.Never, ["--log-keep", "8GB", "--log-limit", "16GB"]), ("default", []),
        (FlushResult.Smallest, ["--log-keep", "64MB"]),
    ];

    public static FlushResult Measure(Measurement run, ScaleCluster cluster)
    {
        int keys = run.Options.Number("stored");
        int seconds = run.Options.Number("seconds") is > 0 and int asked ? asked : 30;
        cluster.Hold(keys);
        Dictionary<string, List<FlushPoint>> rounds = s_variants.ToDictionary(
            static variant => variant.Name, static _ => new List<FlushPoint>(), StringComparer.Ordinal);
        for (int number = 0; number < run.Options.Number("rounds"); number++)
        {
            for (int turn = 0; turn < s_variants.Length; turn++)
            {
                // Each round begins with another variant, so that none always runs first.
                (string name, string[] options) = s_variants[(turn + number) % s_variants.Length];
                cluster.Restart(options);
                cluster.Heat();
                ulong[] before = Stored(cluster);
                ScalePoint point = cluster.Measure("set", 256, seconds);
                int flushed = Stored(cluster).Zip(before).Count(static pair => pair.First > pair.Second);
                run.Say($"flush {name}: {point.Rps:N0}/s, p99.9 {point.P999Ms:F1} ms, {flushed} of 3 nodes flushed");
                rounds[name].Add(new FlushPoint(point, flushed));
            }
        }

        cluster.Restart();
        return new FlushResult(keys, rounds, cluster.DigestsEqual);
    }

    /// <summary>Per node, up to where its states are stored; the sum over its partitions.</summary>
    private static ulong[] Stored(ScaleCluster cluster) =>
    [
        .. from node in cluster.Nodes
           select node.RequireStatus().Partitions.Aggregate(0UL, static (sum, row) => sum + row.StoredIndex),
    ];
}
