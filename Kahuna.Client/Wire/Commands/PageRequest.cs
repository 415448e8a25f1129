namespace Kahuna.Wire.Commands;

/// <summary>
/// A <see cref="CommandKind.LockList"/> or <see cref="CommandKind.SequenceList"/> under its own names: one page of what
/// a partition has under a prefix. A view of the command's bytes, valid as long as they are.
/// </summary>
internal readonly ref struct PageRequest(scoped in Command command)
{
    /// <summary>How the names begin.</summary>
    public ReadOnlySpan<byte> Prefix { get; } = command.Key;

    /// <summary>Where the page begins: 0, or the cursor of the page before.</summary>
    public long Cursor { get; } = command.AtRevision;

    /// <summary>The partition that is listed.</summary>
    public long Partition { get; } = command.Number;

    /// <summary>The command that says this.</summary>
    public static Command ToCommand(CommandKind kind, ReadOnlySpan<byte> prefix, long partition, long cursor) => new()
    {
        Kind = kind,
        Flags = CommandFlags.Number | CommandFlags.AtRevision,
        Key = prefix,
        Number = partition,
        AtRevision = cursor,
    };
}
