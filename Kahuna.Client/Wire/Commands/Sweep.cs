namespace Kahuna.Wire.Commands;

/// <summary>
/// What a leader proposes so that time takes effect, under its own names: <see cref="CommandKind.ExpireSweep"/>,
/// <see cref="CommandKind.SessionSweep"/> and <see cref="CommandKind.LockSweep"/>. A view of the command's bytes, valid
/// as long as they are.
/// </summary>
internal readonly ref struct Sweep(scoped in Command command)
{
    /// <summary>Of keys and locks: how much one sweep does at most.</summary>
    public long StepsMax { get; } = command.Number;

    /// <summary>Of sessions: for how long those were idle that are forgotten, in ms of cluster time.</summary>
    public long IdleMs { get; } = command.Number;

    /// <summary>Of sessions: idempotency keys are swept, and not the sessions that number their commands.</summary>
    public bool IsOfIdempotencyKeys { get; } = command.Has(CommandFlags.Keyed);

    /// <summary>Of locks: what the leader decided about claims that wait.</summary>
    public ReadOnlySpan<byte> Decisions { get; } = command.Value;
}
