namespace Kahuna.Wire.Commands;

/// <summary>
/// A <see cref="CommandKind.LockAcquire"/> under its own names: a claim for a lock, its lease, and how long it waits. A
/// view of the command's bytes, valid as long as they are.
/// </summary>
internal readonly ref struct LockAcquire(scoped in Command command)
{
    /// <summary>Name of the lock.</summary>
    public ReadOnlySpan<byte> Resource { get; } = command.Key;

    /// <summary>The encoded claim (<see cref="LockBody"/>).</summary>
    public ReadOnlySpan<byte> Form { get; } = command.Value;

    /// <summary>How long the lock is held without an extension, in ms.</summary>
    public long LeaseMs { get; } = command.TtlMs;

    /// <summary>The claim stands in the queue while the lock is not free.</summary>
    public bool Waits { get; } = command.Has(CommandFlags.Number);

    /// <summary>For how long it stands there at most, in ms; 0 unless it <see cref="Waits"/>.</summary>
    public long WaitMs { get; } = command.Number;

    /// <summary>The command that says this, without its session.</summary>
    public static Command ToCommand(ReadOnlySpan<byte> resource, ReadOnlySpan<byte> form, long leaseMs, long? waitMs) =>
        new()
        {
            Kind = CommandKind.LockAcquire,
            Flags = CommandFlags.Ttl | (waitMs is null ? CommandFlags.None : CommandFlags.Number),
            Key = resource,
            Value = form,
            TtlMs = leaseMs,
            Number = waitMs ?? 0,
        };
}
