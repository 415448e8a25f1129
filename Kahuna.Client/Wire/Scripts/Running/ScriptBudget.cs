namespace Kahuna.Wire.Scripts.Running;

/// <summary>What one run may use; more is an error of the script. Immutable.</summary>
internal sealed record ScriptBudget
{
    /// <summary>Statements, operators and calls; long operations count in proportion to their length.</summary>
    public int Steps { get; init; } = 100_000;

    /// <summary>Keys that are read, scanned or written.</summary>
    public int Keys { get; init; } = 10_000;

    /// <summary>Integers of one range.</summary>
    public int RangeLength { get; init; } = 100_000;

    /// <summary>Bytes of all values that the run makes or is supplied with.</summary>
    public long Bytes { get; init; } = 16 << 20;

    /// <summary>Bytes of one written value.</summary>
    public int ValueBytesMax { get; init; } = 1 << 20;

    /// <summary>Written keys.</summary>
    public int Writes { get; init; } = 1_000;

    /// <summary>Bytes of the written keys and values.</summary>
    public long WrittenBytes { get; init; } = 4 << 20;
}
