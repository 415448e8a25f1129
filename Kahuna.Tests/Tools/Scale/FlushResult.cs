using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools.Scale;

/// <summary>Sets by how much of the log is kept; ratios are to the variant that stores no state. Immutable.</summary>
internal sealed record FlushResult(int Keys, Dictionary<string, List<FlushPoint>> Rounds, bool DigestsEqual)
    : SectionResult
{
    public const string Never = "never";
    public const string Smallest = "64 MB";

    private static readonly TextColumn[] s_columns =
    [
        new("log kept", 8, IsLeft: true), new("req/s", 9), new("lowest", 9), new("highest", 9),
        new("p99 ms", 7, 2), new("p99.9 ms", 8, 2), new("rate", 5, 2), new("p99", 5, 2), new("p99.9", 5, 2),
        new("nodes that flushed", 18), new("errors", 6),
    ];

    public override void Print(ScaleReport report)
    {
        Dictionary<string, ScalePoint> medians = Rounds.ToDictionary(
            static pair => pair.Key, static pair => ScalePoint.Middle(pair.Value), StringComparer.Ordinal);
        ScalePoint without = medians[Never];
        report.Table(
            $"flush: sets at 256 workers, {Keys:N0} keys, medians; by how much log is kept; ratios to no flush at all",
            s_columns, medians.Select(pair => Row(pair.Key, pair.Value, without)));
        report.Line($"\nfloors");
        foreach ((string variant, ScalePoint median) in medians.Where(static pair => pair.Key != Never))
        {
            report.Floor(
                $"rate with flush and cut, log kept {variant}", Statistics.Ratio(median.Rps, without.Rps),
                Limit.AtLeast(0.85));
        }

        report.Fact($"nothing was flushed in the runs without", Rounds[Never].All(static point => point.Flushed == 0));
        report.Fact(
            $"all nodes flushed in the runs with the smallest log",
            Rounds[Smallest].All(static point => point.Flushed == 3));
        report.Fact($"digests equal", DigestsEqual);
    }

    private object?[] Row(string variant, ScalePoint median, ScalePoint without)
    {
        List<FlushPoint> points = Rounds[variant];
        return
        [
            variant == Never ? "8 GB" : variant, median.Rps, points.Min(static point => point.Rps),
            points.Max(static point => point.Rps), median.P99Ms, median.P999Ms,
            Statistics.Ratio(median.Rps, without.Rps), Statistics.Ratio(median.P99Ms, without.P99Ms),
            Statistics.Ratio(median.P999Ms, without.P999Ms),
            string.Join(' ', points.Select(static point => point.Flushed)), median.Faults,
        ];
    }
}
