namespace Kahuna.Wire.Commands;

/// <summary>
/// A <see cref="CommandKind.KeyRange"/> under its own names: one page of the keys of a partition, in the order of their
/// bytes. A view of the command's bytes, valid as long as they are.
/// </summary>
/// <remarks>
/// The key is the lower bound, the compared value the upper one. The revision to read at is the options: the limit in
/// its lower half, flags above it. The number is the partition.
/// </remarks>
internal readonly ref struct RangeRequest(scoped in Command command)
{
    private const int OptionsShift = 32;

    /// <summary>
    /// The first key that belongs to the range, or, with <see cref="RangeFlags.AfterStart"/>, the one before it. Empty
    /// for the first key of all.
    /// </summary>
    public ReadOnlySpan<byte> Start { get; } = command.Key;

    /// <summary>The first key behind the range.</summary>
    public ReadOnlySpan<byte> End { get; } = command.ComparedValue;

    /// <summary>False: the range ends with the last key of all.</summary>
    public bool HasEnd { get; } = command.Has(CommandFlags.IfValue);

    /// <summary>At most this many keys.</summary>
    public long Limit { get; } = command.AtRevision & uint.MaxValue;

    public RangeFlags Flags { get; } = (RangeFlags)(command.AtRevision >> OptionsShift);

    /// <summary>The partition that is read.</summary>
    public long Partition { get; } = command.Number;

    public bool Has(RangeFlags flag) => (Flags & flag) != 0;

    /// <summary>Limit and flags as one number.</summary>
    public static long Options(int limit, RangeFlags flags) => ((long)flags << OptionsShift) | (uint)limit;
}

/// <summary>How a range is read. On the wire.</summary>
[Flags]
internal enum RangeFlags
{
    None = 0,

    /// <summary>From the end to the start.</summary>
    Descending = 1,

    /// <summary>Without values.</summary>
    KeysOnly = 2,

    /// <summary>The start itself does not belong to the range.</summary>
    AfterStart = 4,

    /// <summary>Only how many keys there are.</summary>
    CountOnly = 8,

    All = 15,
}
