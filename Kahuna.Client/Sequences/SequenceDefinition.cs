using Kahuna.Client.Wire.Commands;

namespace Kahuna.Client.Sequences;

/// <summary>
/// What a sequence is to be like. Immutable, so one instance may serve many calls. Refused with <see cref="KahunaErrorCode.InvalidArgument"/> when the increment is 0, the least value is above the greatest,
/// or the first is not between them.
/// </summary>
public sealed record SequenceDefinition
{
    /// <summary>The first value; null: <see cref="Min"/> of a sequence that counts up, <see cref="Max"/> of one that counts down.</summary>
    public long? Initial { get; init; }

    /// <summary>From one value to the next; not 0. Default 1.</summary>
    public long Increment { get; init; } = 1;

    /// <summary>The least value; null: 1 of a sequence that counts up, the least signed 64-bit integer of one that counts down.</summary>
    public long? Min { get; init; }

    /// <summary>The greatest value; null: the greatest signed 64-bit integer of a sequence that counts up, -1 of one that counts down.</summary>
    public long? Max { get; init; }

    /// <summary>Past its last value the sequence begins again at the other bound, so that values are not unique any more. Default false: it ends there.</summary>
    public bool Cycle { get; init; }

    internal SequenceForm ToForm()
    {
        long min = Min ?? (Increment > 0 ? 1 : long.MinValue);
        long max = Max ?? (Increment > 0 ? long.MaxValue : -1);
        return new SequenceForm { Initial = Initial ?? (Increment > 0 ? min : max), Increment = Increment, Min = min, Max = max, Cycles = Cycle };
    }
}
