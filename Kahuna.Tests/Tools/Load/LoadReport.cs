namespace Kahuna.Tests.Tools.Load;

/// <summary>The report of kahuna-bench, as far as measurements read it. Immutable.</summary>
internal sealed record LoadReport(
    LoadRow Aggregate, IReadOnlyList<LoadRow> Operations, LoadMode Mode, LoadBacklog Generator, double ElapsedSec);

/// <summary>Rate, latencies and faults of an operation, or of all together.</summary>
internal sealed record LoadRow(
    double Rps, double P50Ms, double P99Ms, double P999Ms, double MaxMs, long Count, long Errors, long Timeouts,
    long Misses)
{
    public long Failed => Errors + Timeouts;
}

/// <summary>When the measured time began.</summary>
internal sealed record LoadMode(DateTimeOffset StartedAt);

/// <summary>Calls without an answer at the end.</summary>
internal sealed record LoadBacklog(long Backlog);
