using Kahuna.Benchmark.Recording;

namespace Kahuna.Benchmark.Running;

/// <summary>What a load did, merged over its workers. Immutable.</summary>
internal sealed record LoadResult
{
    /// <summary>
    /// From the start of the measurement to its end or, if that was later, to the last recorded answer.
    /// </summary>
    public required double ElapsedSec { get; init; }

    /// <summary>How long after the end of the measurement the last answer came.</summary>
    public required double DrainSec { get; init; }

    public required IReadOnlyList<OperationTotal> Rows { get; init; }

    public required GeneratorUse Use { get; init; }

    /// <summary>Requests that belong to the measurement.</summary>
    public required long Released { get; init; }

    /// <summary>Those of them that ended: answered, failed or timed out.</summary>
    public required long Recorded { get; init; }

    /// <summary>Requests that were due and that no worker could send before the end of the drain.</summary>
    public required long NotSent { get; init; }

    /// <summary>Requests that were sent and neither answered nor timed out before the end of the drain.</summary>
    public required long Unanswered { get; init; }

    /// <summary>How late the pacing thread was, in microseconds; null in a closed loop.</summary>
    public required LatencyHistogram? PacerLag { get; init; }

    /// <summary>Whether the run was ended by a signal.</summary>
    public required bool IsInterrupted { get; init; }
}
