using System.Globalization;
using Kahuna.Benchmark.Running;

namespace Kahuna.Benchmark.Reporting;

/// <summary>
/// Judges whether the numbers are those of the system under load or of the generator, in sentences for the reader.
/// Static, any thread.
/// </summary>
internal static class GeneratorFindings
{
    /// <summary>
    /// A process that uses this share of all cores leaves the system under load, or itself, too little.
    /// </summary>
    private const double CpuSharePctMax = 75;
    private const double MachineCpuPctMax = 97;

    /// <summary>
    /// Pauses longer than this, or more of them than this share of the time, are visible in the high percentiles.
    /// </summary>
    private const double PauseMsMax = 10;
    private const double PauseSharePctMax = 1;

    /// <summary>
    /// A pacing thread that is later than this in 1 % of its wake-ups shifts the percentiles it is meant to measure.
    /// </summary>
    private const double PacerLagMsMax = 1;
    private const double WakeLagMsMax = 5;

    public static IReadOnlyList<string> Of(BenchReport report)
    {
        List<string> findings = [];
        LoadResult result = report.Result;
        if (result.IsInterrupted)
        {
            findings.Add(Text($"interrupted: the report covers {result.ElapsedSec:F1} s ")
                + Text($"of {report.Options.Duration.TotalSeconds:G} s"));
        }

        if (result.Use.Seconds > 0)
        {
            AddRate(findings, report);
            AddCpu(findings, report);
            AddPauses(findings, result);
        }

        return findings;
    }

    private static void AddRate(List<string> findings, BenchReport report)
    {
        LoadResult result = report.Result;
        long rate = report.Options.Rate;
        if (rate > 0 && report.AchievedRate < rate * BenchReport.AchievedShareMin)
        {
            findings.Add(Text(
                $"the achieved rate of {report.AchievedRate:N0} req/s fell short of the target of {rate:N0} req/s"));
        }

        long backlog = result.NotSent + result.Unanswered;
        if (backlog > 0)
        {
            findings.Add(Text($"backlog: {backlog:N0} requests were due and not finished when the drain ended ")
                + Text($"({result.NotSent:N0} not sent, {result.Unanswered:N0} not answered); no row contains them"));
        }
    }

    private static void AddCpu(List<string> findings, BenchReport report)
    {
        GeneratorUse use = report.Result.Use;
        double share = use.ProcessCpuPct / report.Machine.Cores;
        bool isEmbedded = report.Options.Source.EmbeddedNodes > 0;
        if (share > CpuSharePctMax && !isEmbedded)
        {
            findings.Add(Text($"the generator was the bottleneck: this process used {share:F0} % of all CPU"));
        }
        else if (use.MachineCpuPct > MachineCpuPctMax || share > MachineCpuPctMax)
        {
            string owner = isEmbedded ? "generator and embedded nodes" : "this process";
            findings.Add(Text($"the CPU of this machine was saturated ({use.MachineCpuPct ?? share:F0} % busy, ")
                + Text($"{share:F0} % by {owner}): a machine of its own for the generator would show more"));
        }
    }

    private static void AddPauses(List<string> findings, LoadResult result)
    {
        GeneratorUse use = result.Use;
        double pauseShare = use.PauseTotalMs / 10 / use.Seconds;
        if (use.PauseMaxMs > PauseMsMax || pauseShare > PauseSharePctMax)
        {
            findings.Add(Text($"garbage collection stopped this process for {use.PauseTotalMs:F1} ms in total ")
                + Text($"({pauseShare:F2} %), {use.PauseMaxMs:F1} ms at most; the latencies contain it"));
        }

        double pacerLagMs = (result.PacerLag?.ValueAtPercentile(99) ?? 0) / 1000.0;
        if (pacerLagMs > PacerLagMsMax)
        {
            findings.Add(Text($"the pacing thread was up to {pacerLagMs:F1} ms late in 99 % of its wake-ups; ")
                + "the latencies contain it");
        }

        if (use.WakeLagP99Ms > WakeLagMsMax)
        {
            findings.Add(Text($"threads of this process were woken up to {use.WakeLagP99Ms:F1} ms late ")
                + Text($"(p99, at most {use.WakeLagMaxMs:F1} ms); the latencies contain it"));
        }
    }

    private static string Text(FormattableString text) => text.ToString(CultureInfo.InvariantCulture);
}
