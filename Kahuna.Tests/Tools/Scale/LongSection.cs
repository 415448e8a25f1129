using System.Diagnostics;
using Kahuna.Tests.Tools.Load;
using Kahuna.Tests.Tools.Processes;

namespace Kahuna.Tests.Tools.Scale;

/// <summary>
/// A few keys overwritten at full speed for a long time: disk, memory and rate over the minutes. Stateless.
/// </summary>
internal static class LongSection
{
    private const int Keys = 10_000;
    private const double SampleSeconds = 10;

    /// <summary>The default of <c>--log-keep</c>.</summary>
    private const long LogKeep = 512_000_000;

    public static LongResult Measure(Measurement run, ScaleCluster cluster)
    {
        cluster.Fresh();
        cluster.Fill(Keys);
        cluster.Heat();
        List<LongMinute> minutes = [];
        List<LongSample> samples = [];
        Stopwatch elapsed = Stopwatch.StartNew();
        for (int minute = 1; minute <= run.Options.Number("minutes"); minute++)
        {
            // A new generator each minute; what its start and end take is left out of the measured time.
            int seconds = Math.Max(1, (int)((60 * minute) - elapsed.Elapsed.TotalSeconds - 3));
            int taken = samples.Count;
            void Tick() => Sample(cluster, samples, elapsed.Elapsed.TotalSeconds);
            LoadRow row = cluster.Load("set", 256, seconds, warmup: 1, tick: Tick).Aggregate;
            LongNode[] nodes = [.. samples.Skip(taken).SelectMany(static sample => sample.Nodes)];
            LongMinute last = new(
                minute, row.Rps, row.P99Ms, row.Failed, nodes.Max(static node => node.Disk),
                nodes.Max(static node => node.LogBytes), nodes.Average(static node => (double)node.Resident));
            minutes.Add(last);
            (double disk, double memory) = (last.DiskHighest / 1e6, last.Resident / 1e6);
            run.Say($"minute {minute}: {last.Rps:N0}/s, disk {disk:N0} MB, memory {memory:N0} MB per node");
        }

        return new LongResult(Keys, LogKeep, minutes, samples, cluster.DigestsEqual);
    }

    /// <summary>Disk, log and memory of all nodes every ten seconds, in the midst of a load.</summary>
    private static void Sample(ScaleCluster cluster, List<LongSample> samples, double seconds)
    {
        if (seconds >= samples.Count * SampleSeconds)
        {
            samples.Add(new LongSample(Math.Round(seconds, 1), [.. cluster.Nodes.Select(Sample)]));
        }
    }

    private static LongNode Sample(ServerNode node)
    {
        DiskUse disk = node.Disk();
        return new LongNode(disk.Log + disk.State, node.RequireStatus().Storage.LogBytes, node.Memory.Resident);
    }
}
