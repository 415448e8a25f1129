using Kahuna.Tests.Cluster;
using Kahuna.Tests.Tools.Load;
using Kahuna.Tests.Tools.Processes;
using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools;

/// <summary>Memory and pauses of a node, with the floors of scripts/memory.sh. Pure.</summary>
internal static class MemoryReport
{
    /// <param name="output">Where it is printed.</param>
    /// <param name="keys">How many there are.</param>
    /// <param name="valueSize">Bytes of each value.</param>
    /// <param name="load">What overwriting them was like.</param>
    /// <param name="memory">Of the process afterwards.</param>
    /// <param name="gc">The collector's counts afterwards.</param>
    /// <param name="pausesBefore">The collector's pauses when overwriting began.</param>
    public static void Print(
        TextWriter output, int keys, int valueSize, LoadRow load, MemoryUse memory, CollectorRow gc, int pausesBefore)
    {
        double resident = memory.Resident / 1e6;
        int during = gc.Pauses - pausesBefore;
        double[] kept = [.. gc.LatestPausesMs.TakeLast(during)];
        double pause = kept.DefaultIfEmpty(0).Max();
        output.Line($"keys                 {keys,12:N0}   of {valueSize} bytes each");
        output.Line($"resident memory      {resident,12:N1} MB   managed and native together");
        output.Line($"  of it anonymous    {memory.Anonymous / 1e6,12:N1} MB");
        output.Line($"  highest so far     {memory.Highest / 1e6,12:N1} MB");
        output.Line($"managed heap         {gc.HeapBytes / 1e6,12:N1} MB");
        output.Line($"overwriting          {load.Rps,12:N0} sets/s, p99 {load.P99Ms:F2} ms, {load.Failed} errors");
        output.Line($"collector pauses     {during,12} while overwriting, {gc.Pauses:N0} since the start");
        output.Line(
            $"longest pause        {pause,12:N2} ms while overwriting, {gc.LongestPauseMs:N2} ms since the start");
        if (during > kept.Length)
        {
            output.Line($"  (the latest {kept.Length} of them are known one by one)");
        }

        if ((keys, valueSize) == (1_000_000, 128))
        {
            output.Line($"floor: memory at most 350 MB          {Verdict(Limit.AtMost(350), resident)}");
            output.Line($"floor: longest pause at most 10 ms    {Verdict(Limit.AtMost(10), pause)}");
        }
    }

    private static string Verdict(Limit limit, double value) => limit.IsReached(value) ? "ok" : "missed";
}
