using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools.Scale;

/// <summary>Sets without and while a follower is filled by snapshot. Immutable.</summary>
internal sealed record SnapshotResult(int Keys, double KeyBytes, IReadOnlyList<SnapshotRound> Rounds) : SectionResult
{
    private static readonly TextColumn[] s_rateColumns =
    [
        new("round", 5), new("req/s without", 13), new("meanwhile", 9), new("rate", 5, 2),
        new("p99.9 ms without", 16, 2), new("meanwhile", 9, 2),
        new("p99.9", 5, 2), new("digests", 9), new("errors", 6),
    ];

    private static readonly TextColumn[] s_secondsColumns =
    [
        new("round", 5), new("answers s", 9, 2), new("filled s", 9, 2), new("votes s", 9, 2), new("back s", 9, 2),
        new("MB/s", 9, 1), new("state MB", 9, 1),
    ];

    private const string SecondsTitle =
        "snapshot: seconds from the follower's start until it answers, has all keys, may vote, and keeps up";

    public override void Print(ScaleReport report)
    {
        report.Table(
            $"snapshot: sets at 64 workers, {Keys:N0} keys, without and while a follower is filled", s_rateColumns,
            Rounds.Select(static (round, i) => new object?[]
        {
            i + 1, round.Without.Rps, round.During.Rps, Statistics.Ratio(round.During.Rps, round.Without.Rps),
            round.Without.P999Ms, round.During.P999Ms, Statistics.Ratio(round.During.P999Ms, round.Without.P999Ms),
            round.DigestsEqual ? "equal" : "DIFFERENT", round.Without.Faults + round.During.Faults,
        }));
        report.Table(
            $"{SecondsTitle}; MB of keys and values per second until filled",
            s_secondsColumns,
            Rounds.Select((round, i) => new object?[]
            {
                i + 1, round.At("answers"), round.At("filled"), round.At("votes"), round.At("back"),
                round.MegabytesPerSecond(Keys * (KeyBytes + ScaleReport.ValueBytes)), round.StateBytes / 1e6,
            }));
        report.Line($"\nnode {Rounds[^1].Node} in the last round");
        foreach (string line in Rounds[^1].Lines)
        {
            report.Line($"  {line}");
        }

        report.Line($"\nfloors (medians)");
        (ScalePoint without, ScalePoint during) =
            (Middle(static round => round.Without), Middle(static round => round.During));
        report.Floor($"rate meanwhile / without", Statistics.Ratio(during.Rps, without.Rps), Limit.AtLeast(0.7));
        report.Floor($"p99.9 meanwhile / without", Statistics.Ratio(during.P999Ms, without.P999Ms), Limit.AtMost(3.0));
        report.Fact($"digests equal after each", Rounds.All(static round => round.DigestsEqual));
    }

    private ScalePoint Middle(Func<SnapshotRound, ScalePoint> which) => ScalePoint.Middle([.. Rounds.Select(which)]);
}

/// <summary>One follower that was filled.</summary>
internal sealed record SnapshotRound(
    int Node, ScalePoint Without, ScalePoint During, IReadOnlyDictionary<string, double> Seconds, bool DigestsEqual,
    long StateBytes,
    IReadOnlyList<string> Lines, IReadOnlyList<RebuildStep> Timeline)
{
    /// <summary>Seconds until it reached a point; null when that was not seen.</summary>
    public double? At(string point) => Seconds.TryGetValue(point, out double seconds) ? seconds : null;

    /// <summary>Null when the node answered only after it was filled.</summary>
    public double? MegabytesPerSecond(double bytes) =>
        (At("filled") ?? 0) - (At("answers") ?? 0) is > 0 and double between ? bytes / between / 1e6 : null;
}

/// <summary>What the leader had committed, and what the follower had of it.</summary>
internal sealed record RebuildStep(double Seconds, long Committed, long? Applied, long? Keys);
