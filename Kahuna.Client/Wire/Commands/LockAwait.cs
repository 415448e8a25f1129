namespace Kahuna.Wire.Commands;

/// <summary>
/// A <see cref="CommandKind.LockAwait"/> under its own names: how a claim stands. A view of the command's bytes, valid
/// as long as they are.
/// </summary>
internal readonly ref struct LockAwait(scoped in Command command)
{
    /// <summary>Name of the lock.</summary>
    public ReadOnlySpan<byte> Resource { get; } = command.Key;

    /// <summary>Whose claim it is.</summary>
    public ReadOnlySpan<byte> Owner { get; } = command.Value;

    /// <summary>The token of the claim.</summary>
    public FencingToken Token { get; } = new(command.ComparedRevision);

    /// <summary>How long the leader may delay its answer while the claim waits, in ms.</summary>
    public long HoldMs { get; } = command.Number;

    /// <summary>The command that says this.</summary>
    public static Command ToCommand(
        ReadOnlySpan<byte> resource, ReadOnlySpan<byte> owner, FencingToken token, long holdMs) =>
        new()
        {
            Kind = CommandKind.LockAwait,
            Flags = CommandFlags.IfRevision | CommandFlags.Number,
            Key = resource,
            Value = owner,
            ComparedRevision = token.Value,
            Number = holdMs,
        };
}
