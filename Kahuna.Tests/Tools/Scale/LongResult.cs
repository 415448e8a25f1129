using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools.Scale;

/// <summary>The minutes of keys that were overwritten at full speed. Immutable.</summary>
internal sealed record LongResult(
    int Keys, long LogKeep, IReadOnlyList<LongMinute> Minutes, IReadOnlyList<LongSample> Samples, bool DigestsEqual)
    : SectionResult
{
    private static readonly TextColumn[] s_columns =
    [
        new("minute", 6), new("req/s", 9), new("p99 ms", 7, 2), new("disk MB", 9, 1), new("log MB", 9, 1),
        new("memory MB", 9, 1), new("errors", 6),
    ];

    public override void Print(ScaleReport report)
    {
        report.Table(
            $"long: {Keys:N0} keys overwritten at 256 workers; disk and log of the node with the most, memory per node",
            s_columns,
            Minutes.Select(static row => new object?[]
            {
                row.Minute, row.Rps, row.P99Ms,
                row.DiskHighest / 1e6, row.LogHighest / 1e6, row.Resident / 1e6, row.Faults,
            }));
        report.Line($"\nfloors");
        report.Floor(
            $"most disk per node / log kept ({LogKeep / 1e6:N0} MB)",
            (double)Minutes.Max(static row => row.DiskHighest) / LogKeep, Limit.AtMost(3.0));
        int span = Math.Min(5, Minutes.Count / 2);
        if (span > 0)
        {
            int last = Minutes.Count - span;
            report.Floor(
                $"memory, last {span} min / second {span} min",
                Statistics.Ratio(Mean(last, span, static r => r.Resident), Mean(span, span, static r => r.Resident)),
                Limit.AtMost(1.1));
            report.Floor(
                $"rate, last {span} min / first {span} min",
                Statistics.Ratio(Mean(last, span, static row => row.Rps), Mean(0, span, static row => row.Rps)),
                Limit.AtLeast(0.9));
        }

        report.Fact($"digests equal", DigestsEqual);
    }

    private double Mean(int first, int count, Func<LongMinute, double> field) =>
        Minutes.Skip(first).Take(count).Average(field);
}

/// <summary>One minute; disk and log of the node with the most, memory per node.</summary>
internal sealed record LongMinute(
    int Minute, double Rps, double P99Ms, long Faults, long DiskHighest, long LogHighest, double Resident);

/// <summary>All nodes at one moment.</summary>
internal sealed record LongSample(double Seconds, IReadOnlyList<LongNode> Nodes);

/// <summary>One node at one moment.</summary>
internal sealed record LongNode(long Disk, long LogBytes, long Resident);
