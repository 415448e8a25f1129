using Kahuna.Wire.Commands;

namespace Kahuna.Client.Sequences;

/// <summary>
/// The definition of a new sequence. Immutable, so one instance may serve many calls. An increment of 0, a minimum
/// above the maximum, and a first value outside of them are refused with <see cref="KahunaErrorCode.InvalidArgument"/>.
/// </summary>
public sealed record SequenceDefinition
{
    /// <summary>
    /// The first value. Null: <see cref="Min"/> of an ascending sequence, <see cref="Max"/> of a descending one.
    /// </summary>
    public long? Initial { get; init; }

    /// <summary>The step from one value to the next; not 0. Default 1.</summary>
    public long Increment { get; init; } = 1;

    /// <summary>
    /// The least value. Null: 1 of an ascending sequence, the least signed 64-bit integer of a descending one.
    /// </summary>
    public long? Min { get; init; }

    /// <summary>
    /// The greatest value. Null: the greatest signed 64-bit integer of an ascending sequence, -1 of a descending one.
    /// </summary>
    public long? Max { get; init; }

    /// <summary>
    /// Restarts the sequence at the other bound after its last value, so that values repeat. Default false: the
    /// sequence ends.
    /// </summary>
    public bool Cycle { get; init; }

    internal SequenceBody ToBody() => SequenceBody.Of(Initial, Increment, Min, Max, Cycle);
}
