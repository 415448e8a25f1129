namespace Kahuna.Wire.Commands;

/// <summary>
/// A <see cref="CommandKind.LockObserve"/> under its own names: who holds a lock, once that changes. A view of the
/// command's bytes, valid as long as they are.
/// </summary>
internal readonly ref struct LockObserve(scoped in Command command)
{
    /// <summary>Name of the lock.</summary>
    public ReadOnlySpan<byte> Resource { get; } = command.Key;

    /// <summary>The first holder's token as the caller knows it; none: nobody held the lock.</summary>
    public FencingToken KnownToken { get; } = new(command.ComparedRevision);

    /// <summary>How long the leader may delay its answer while that is still so, in ms.</summary>
    public long HoldMs { get; } = command.Number;

    /// <summary>The command that says this.</summary>
    public static Command ToCommand(ReadOnlySpan<byte> resource, FencingToken knownToken, long holdMs) => new()
    {
        Kind = CommandKind.LockObserve,
        Flags = CommandFlags.IfRevision | CommandFlags.Number,
        Key = resource,
        ComparedRevision = knownToken.Value,
        Number = holdMs,
    };
}
