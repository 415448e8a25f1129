namespace Kahuna.Wire.Commands;

/// <summary>
/// A <see cref="CommandKind.SequenceNext"/> under its own names: the next values of a sequence are taken. A view of the
/// command's bytes, valid as long as they are.
/// </summary>
internal readonly ref struct SequenceNext(scoped in Command command)
{
    /// <summary>Name of the sequence.</summary>
    public ReadOnlySpan<byte> Name { get; } = command.Key;

    /// <summary>How many values are taken.</summary>
    public long Count { get; } = command.Number;

    /// <summary>The command that says this, without its session.</summary>
    public static Command ToCommand(ReadOnlySpan<byte> name, long count) => new()
    {
        Kind = CommandKind.SequenceNext,
        Flags = CommandFlags.Number,
        Key = name,
        Number = count,
    };
}
