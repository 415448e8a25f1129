using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools.Failover;

/// <summary>The longest call of each round, by fault, and how many calls did not succeed. Immutable.</summary>
internal sealed record FailoverReport(
    string Durability, IReadOnlyDictionary<string, List<double>> LongestMs, long Failed)
{
    /// <summary>The most that a longest call may take.</summary>
    public static readonly Limit Worst = Limit.AtMost(2500);

    private static readonly Limit s_median = Limit.AtMost(1500);

    public void Print(TextWriter output)
    {
        output.WriteLine($"| the leader, {Durability} | rounds | median | worst | floors |");
        output.WriteLine("|---|---|---|---|---|");
        foreach ((string fault, List<double> calls) in LongestMs)
        {
            (double median, double worst) = (calls.Median(), calls.Max());
            string verdict = s_median.IsReached(median) && Worst.IsReached(worst) ? "ok" : "BELOW";
            string title = FaultKind.Of(fault).Title;
            output.Line($"| {title} | {calls.Count} | {median / 1000:F2} s | {worst / 1000:F2} s | {verdict} |");
        }
    }
}
