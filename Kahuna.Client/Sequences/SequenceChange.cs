using Kahuna.Wire.Commands;

namespace Kahuna.Client.Sequences;

/// <summary>
/// A change of a sequence's definition; null leaves a property unchanged. Values already taken are not affected.
/// Immutable.
/// </summary>
public sealed record SequenceChange
{
    /// <summary>The step from one value to the next; not 0.</summary>
    public long? Increment { get; init; }

    /// <summary>The least value; not above the latest one.</summary>
    public long? Min { get; init; }

    /// <summary>The greatest value; not below the latest one.</summary>
    public long? Max { get; init; }

    /// <summary>Whether the sequence restarts after its last value.</summary>
    public bool? Cycle { get; init; }

    internal SequenceBody ToBody() => SequenceBody.ChangeOf(Increment, Min, Max, Cycle);
}
