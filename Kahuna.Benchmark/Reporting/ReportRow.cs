using Kahuna.Benchmark.Recording;

namespace Kahuna.Benchmark.Reporting;

/// <summary>
/// One row of a report: successes with their rate and latencies in milliseconds, and what did not succeed. Immutable.
/// </summary>
internal sealed record ReportRow
{
    public required string Operation { get; init; }

    public required long Count { get; init; }

    public required double Rps { get; init; }

    public required double P50Ms { get; init; }

    public required double P90Ms { get; init; }

    public required double P95Ms { get; init; }

    public required double P99Ms { get; init; }

    public required double P999Ms { get; init; }

    public required double MaxMs { get; init; }

    public required double MeanMs { get; init; }

    public required long Errors { get; init; }

    public required long Timeouts { get; init; }

    public required long Misses { get; init; }

    public static ReportRow From(OperationTotal total, double elapsedSec)
    {
        LatencyHistogram latencies = total.Latencies;
        return new ReportRow
        {
            Operation = total.Name,
            Count = latencies.TotalCount,
            Rps = elapsedSec > 0 ? Round(latencies.TotalCount / elapsedSec) : 0,
            P50Ms = latencies.ValueAtPercentile(50) / 1000.0,
            P90Ms = latencies.ValueAtPercentile(90) / 1000.0,
            P95Ms = latencies.ValueAtPercentile(95) / 1000.0,
            P99Ms = latencies.ValueAtPercentile(99) / 1000.0,
            P999Ms = latencies.ValueAtPercentile(99.9) / 1000.0,
            MaxMs = latencies.Max / 1000.0,
            MeanMs = Round(latencies.Mean() / 1000.0),
            Errors = total.Errors,
            Timeouts = total.Timeouts,
            Misses = total.Misses,
        };
    }

    private static double Round(double value) => Math.Round(value, 3, MidpointRounding.AwayFromZero);
}
