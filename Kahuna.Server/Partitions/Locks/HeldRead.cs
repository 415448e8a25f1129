namespace Kahuna.Server.Partitions.Locks;

/// <summary>A read about a lock whose answer is held back. Owned by a <see cref="LockDesk"/>.</summary>
/// <param name="sink">Who gets the answer.</param>
/// <param name="number">The request's number there.</param>
/// <param name="key">What it waits for (<see cref="State.Locks.LockRows.Changes"/>).</param>
/// <param name="command">The read.</param>
/// <param name="next">Another one that waits for the same.</param>
internal sealed class HeldRead(ReplySink sink, uint number, long key, byte[] command, HeldRead? next)
{
    public ReplySink Sink => sink;

    public uint Number => number;

    public long Key => key;

    public byte[] Command => command;

    public HeldRead? Next { get; set; } = next;

    public bool IsAnswered { get; set; }
}
