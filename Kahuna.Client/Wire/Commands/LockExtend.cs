namespace Kahuna.Wire.Commands;

/// <summary>
/// A <see cref="CommandKind.LockExtend"/> under its own names: the lease of a lock that is held is renewed. A view of
/// the command's bytes, valid as long as they are.
/// </summary>
internal readonly ref struct LockExtend(scoped in Command command)
{
    /// <summary>Name of the lock.</summary>
    public ReadOnlySpan<byte> Resource { get; } = command.Key;

    /// <summary>Who holds it.</summary>
    public ReadOnlySpan<byte> Owner { get; } = command.Value;

    /// <summary>The token under which it is held.</summary>
    public FencingToken Token { get; } = new(command.ComparedRevision);

    /// <summary>How long it is held from now on, in ms.</summary>
    public long LeaseMs { get; } = command.TtlMs;

    /// <summary>The command that says this, without its session.</summary>
    public static Command ToCommand(
        ReadOnlySpan<byte> resource, ReadOnlySpan<byte> owner, FencingToken token, long leaseMs) =>
        new()
        {
            Kind = CommandKind.LockExtend,
            Flags = CommandFlags.IfRevision | CommandFlags.Ttl,
            Key = resource,
            Value = owner,
            ComparedRevision = token.Value,
            TtlMs = leaseMs,
        };
}
