using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Commands;

namespace Kahuna.Server.State;

/// <summary>
/// The data of one partition: applies commands in log order, answers reads. Deterministic: same commands with the same
/// times give the same state, byte for byte, on every node. Owned by one loop; not thread-safe.
/// </summary>
internal sealed class StateMachine
{
    public StateMachine(StateLimits limits) => throw new NotSupportedException();

    /// <summary>Cluster time of the last applied entry, in ms; never decreases.</summary>
    public long TimeMs => throw new NotSupportedException();

    public StateCounts Counts => throw new NotSupportedException();

    /// <summary>Begins an entry whose commands apply at <paramref name="timeMs"/>; a time below <see cref="TimeMs"/> counts as TimeMs.</summary>
    public void BeginEntry(long timeMs) => throw new NotSupportedException();

    /// <summary>
    /// Applies one mutation. With <paramref name="outcome"/> the encoded outcome (Wire/Outcomes/Outcome) is appended there;
    /// without (followers, restart) the effect is the same and nothing is encoded.
    /// </summary>
    public void Apply(scoped in Command command, ByteBuffer? outcome) => throw new NotSupportedException();

    /// <summary>Answers one read (Get, Exists) at cluster time <paramref name="nowMs"/>, which hides what has expired by then, and appends its encoded outcome.</summary>
    public void Read(scoped in Command command, long nowMs, ByteBuffer outcome) => throw new NotSupportedException();

    /// <summary>True when some key's time to live has passed at <paramref name="nowMs"/> and it is still there: the leader then proposes an ExpireSweep.</summary>
    public bool HasExpired(long nowMs) => throw new NotSupportedException();

    /// <summary>64-bit digest of keys, values, revisions, times to live and history; equal on nodes that applied the same entries. Linear in the state's size: for tests and operators.</summary>
    public ulong Digest() => throw new NotSupportedException();
}
