namespace Kahuna.Wire.Commands;

/// <summary>
/// A <see cref="CommandKind.KeyRange"/> under its own names: one page of the keys of a partition, in the order of their
/// bytes. Commands on cuts have the same fields. A view of the command's bytes, valid as long as they are.
/// </summary>
/// <remarks>
/// The key is the lower bound, the compared value the upper one. The revision to read at is the options: the limit in
/// its lower half, flags above it. The number is the partition, the compared revision a cut.
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

    /// <summary>The cut that is read; 0: the newest state.</summary>
    public long Cut { get; } = command.Has(CommandFlags.IfRevision) ? command.ComparedRevision : 0;

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

    /// <summary>All flags of a page.</summary>
    All = 15,

    /// <summary>
    /// Of <see cref="CommandKind.CutOpen"/>: the leader proposes nothing until the cut is confirmed, for a few ms at
    /// most.
    /// </summary>
    Hold = 16,
}
