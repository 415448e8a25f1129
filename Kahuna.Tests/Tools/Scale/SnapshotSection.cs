using Kahuna.Tests.Tools.Processes;

namespace Kahuna.Tests.Tools.Scale;

/// <summary>Sets while a follower is filled by snapshot, against sets without. Stateless.</summary>
internal static class SnapshotSection
{
    public static SnapshotResult Measure(Measurement run, ScaleCluster cluster)
    {
        int keys = run.Options.Number("stored");
        int seconds = run.Options.Number("seconds") is > 0 and int asked ? asked : 10;
        cluster.Hold(keys);
        cluster.Restart();
        cluster.Heat();

        // A follower whose log is still whole everywhere would get that instead.
        while (cluster.Nodes.Any(static node => node.RequireStatus().Partitions.Any(static row => row.LogStart == 0)))
        {
            cluster.Load("set", 256, 10, warmup: 0);
        }

        SnapshotRound[] rounds =
        [
            .. from number in Enumerable.Range(0, run.Options.Number("rounds"))
               select Round(run, cluster, cluster.Followers[number % 2], seconds),
        ];
        return new SnapshotResult(keys, SectionResult.KeyLength(keys), rounds);
    }

    private static SnapshotRound Round(Measurement run, ScaleCluster cluster, ServerNode node, int seconds)
    {
        ScalePoint without = cluster.Measure("set", 64, seconds);
        long position = node.LogPosition;
        node.Kill();
        Rebuild rebuild = new(cluster, node);
        ScalePoint during = cluster.Measure("set", 64, KeysSection.BackSeconds, rebuild.Step);
        if (!rebuild.Seconds.TryGetValue("back", out double back))
        {
            throw new MeasureException(
                $"node {node.Number} is not back after {KeysSection.BackSeconds} s; {node.LogEnd}");
        }

        bool equal = cluster.DigestsEqual;
        run.Say(
            $"node {node.Number} was back after {back:F1} s; {without.Rps:N0}/s without, {during.Rps:N0}/s meanwhile");
        return new SnapshotRound(
            node.Number, without, during, rebuild.Seconds, equal, node.Disk().State,
            KeysSection.ProgressLines(node.LogSince(position)), rebuild.Timeline);
    }
}
