namespace Kahuna.Wire.Commands;

/// <summary>
/// A <see cref="CommandKind.LockRelease"/> under its own names: a lock, or a place in its queue, is given back. A view
/// of the command's bytes, valid as long as they are.
/// </summary>
internal readonly ref struct LockRelease(scoped in Command command)
{
    /// <summary>Name of the lock.</summary>
    public ReadOnlySpan<byte> Resource { get; } = command.Key;

    /// <summary>Who holds it, or waits for it.</summary>
    public ReadOnlySpan<byte> Owner { get; } = command.Value;

    /// <summary>The token of the claim.</summary>
    public FencingToken Token { get; } = new(command.ComparedRevision);

    /// <summary>Only a place in the queue is given back, not the lock.</summary>
    public bool OnlyPlace { get; } = command.Has(CommandFlags.IfAbsent);

    /// <summary>The command that says this, without its session.</summary>
    public static Command ToCommand(
        ReadOnlySpan<byte> resource, ReadOnlySpan<byte> owner, FencingToken token, bool onlyPlace) =>
        new()
        {
            Kind = CommandKind.LockRelease,
            Flags = CommandFlags.IfRevision | (onlyPlace ? CommandFlags.IfAbsent : CommandFlags.None),
            Key = resource,
            Value = owner,
            ComparedRevision = token.Value,
        };
}
