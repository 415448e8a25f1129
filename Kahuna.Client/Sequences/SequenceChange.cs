using Kahuna.Client.Wire.Commands;

namespace Kahuna.Client.Sequences;

/// <summary>What is to change about a sequence; null leaves it as it is. Values that were taken are not taken again. Immutable.</summary>
public sealed record SequenceChange
{
    /// <summary>From one value to the next; not 0.</summary>
    public long? Increment { get; init; }

    /// <summary>The least value, not above the latest one.</summary>
    public long? Min { get; init; }

    /// <summary>The greatest value, not below the latest one.</summary>
    public long? Max { get; init; }

    /// <summary>Whether it begins again past its last value.</summary>
    public bool? Cycle { get; init; }

    internal SequenceForm ToForm() => new()
    {
        Increment = Increment ?? 0,
        Min = Min ?? 0,
        Max = Max ?? 0,
        Cycles = Cycle ?? false,
        Mask = (byte)((Increment is null ? 0 : SequenceForm.ChangesIncrement)
            | (Min is null ? 0 : SequenceForm.ChangesMin)
            | (Max is null ? 0 : SequenceForm.ChangesMax)
            | (Cycle is null ? 0 : SequenceForm.ChangesCycle)),
    };
}
