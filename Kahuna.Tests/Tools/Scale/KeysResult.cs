using Kahuna.Tests.Tools.Processes;
using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools.Scale;

/// <summary>What several numbers of keys cost; ratios are to the smallest. Immutable.</summary>
internal sealed record KeysResult(int Rounds, IReadOnlyList<SizeResult> Sizes) : SectionResult
{
    /// <summary>
    /// A restart takes a second before it loads anything; below this many keys that second is all there is.
    /// </summary>
    private const int RestartFloorKeys = 1_000_000;

    private static readonly TextColumn[] s_pointColumns =
    [
        new("workload", 8, IsLeft: true), new("workers", 7), new("keys", 10), new("req/s", 9), new("p50 ms", 7, 2),
        new("p99 ms", 7, 2), new("p99.9 ms", 8, 2), new("cpu us/op", 9, 2), new("time", 5, 2), new("cpu", 5, 2),
        new("errors", 6),
    ];

    private static readonly TextColumn[] s_sizeColumns =
    [
        new("keys", 10), new("memory MB", 9, 1), new("anonymous", 9, 1), new("managed", 9, 1), new("highest", 9, 1),
        new("bytes/key", 9, 1),
        new("log MB", 8, 1), new("state MB", 8, 1), new("filled s", 8, 1), new("restart s", 9, 2), new("digests", 9),
    ];

    public override void Print(ScaleReport report)
    {
        SizeResult smallest = Sizes[0];
        List<object?[]> rows = [];
        List<(FormattableString What, double? Cost)> costs = [];
        for (int i = 0; i < smallest.Points.Count; i++)
        {
            SizePoint first = smallest.Points[i];
            foreach (SizeResult size in Sizes)
            {
                SizePoint point = size.Points[i];
                double? cost = Statistics.MedianRatio(first.Rates, point.Rates);
                rows.Add([point.Workload, point.Workers, size.Keys, point.Rps, point.P50Ms, point.P99Ms, point.P999Ms,
                    point.ProcessorUs, cost, Statistics.Ratio(point.ProcessorUs, first.ProcessorUs), point.Faults]);
                if (size != smallest)
                {
                    string what = $"time per {point.Workload} at {point.Workers}";
                    costs.Add(($"{what}, {size.Keys:N0} keys / {smallest.Keys:N0}", cost));
                }
            }
        }

        string values = $"values of {ScaleReport.ValueBytes} bytes";
        report.Table(
            $"keys: rate and cost, {values}; processor time of the three nodes; ratios to {smallest.Keys:N0} keys",
            s_pointColumns, rows);
        report.Table($"keys: the node that needs the most", s_sizeColumns, Sizes.Select(size => size.Row(smallest)));
        PrintRestarts(report);
        report.Line($"\nfloors");
        foreach ((FormattableString what, double? cost) in costs)
        {
            report.Floor(what, cost, Limit.AtMost(1.3));
        }

        PrintFloors(report, smallest);
    }

    private void PrintRestarts(ScaleReport report)
    {
        foreach (SizeResult size in Sizes)
        {
            RestartResult restart = size.Restart;
            string store = size.StateStore;
            report.Line($"\nrestart after kill -9, {size.Keys:N0} keys, states in {store}: {restart.Seconds:F2} s");
            foreach (string line in restart.Lines)
            {
                report.Line($"  {line}");
            }
        }
    }

    private void PrintFloors(ScaleReport report, SizeResult smallest)
    {
        foreach (SizeResult size in Sizes.Skip(1))
        {
            report.Floor(
                $"memory per key at {size.Keys:N0} keys, bytes", size.BytesPerKey(smallest),
                Limit.AtMost(200 + size.KeyBytes + ScaleReport.ValueBytes));
        }

        foreach (SizeResult size in Sizes)
        {
            if (size.Keys >= RestartFloorKeys)
            {
                report.Floor(
                    $"restart with {size.Keys:N0} keys, s", size.Restart.Seconds, Limit.AtMost(6.0 * size.Keys / 1e6));
            }

            report.Fact($"digests equal at {size.Keys:N0} keys", size.DigestsEqual);
        }
    }
}

/// <summary>One number of keys.</summary>
internal sealed record SizeResult
{
    public required int Keys { get; init; }

    public required double KeyBytes { get; init; }

    public required double FillSeconds { get; init; }

    public required IReadOnlyList<SizePoint> Points { get; init; }

    public required string StateStore { get; init; }

    public required IReadOnlyList<MemoryUse> Memory { get; init; }

    public required MemoryUse MemoryHighest { get; init; }

    public required DiskUse DiskHighest { get; init; }

    public required RestartResult Restart { get; init; }

    public required bool DigestsEqual { get; init; }

    /// <summary>What a key more costs in memory; null for the smallest size itself.</summary>
    public double? BytesPerKey(SizeResult smallest) =>
        Keys == smallest.Keys
            ? null : (double)(MemoryHighest.Resident - smallest.MemoryHighest.Resident) / (Keys - smallest.Keys);

    public object?[] Row(SizeResult smallest) =>
    [
        Keys, MemoryHighest.Resident / 1e6, MemoryHighest.Anonymous / 1e6, MemoryHighest.Heap / 1e6,
        MemoryHighest.Highest / 1e6, BytesPerKey(smallest),
        DiskHighest.Log / 1e6, DiskHighest.State / 1e6, FillSeconds, Restart.Seconds,
        DigestsEqual ? "equal" : "DIFFERENT",
    ];
}

/// <summary>Seconds until a killed node was ready again, and what it said meanwhile.</summary>
internal sealed record RestartResult(double Seconds, IReadOnlyList<string> Lines);
