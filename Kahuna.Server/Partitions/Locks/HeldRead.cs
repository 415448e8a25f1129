namespace Kahuna.Server.Partitions.Locks;

/// <summary>A read about a lock whose answer is held back, in a list of those that wait for the same. Owned by a <see cref="LockDesk"/>.</summary>
/// <param name="sink">Who gets the answer.</param>
/// <param name="number">The request's number there.</param>
/// <param name="key">What it waits for (<see cref="State.Locks.LockRows.Changes"/>).</param>
/// <param name="command">The read.</param>
internal sealed class HeldRead(ReplySink sink, uint number, long key, byte[] command)
{
    /// <summary>What a held read takes up besides its bytes, in the desk's lists and queue.</summary>
    private const int PlaceBytes = 256;

    public ReplySink Sink => sink;

    public uint Number => number;

    public long Key => key;

    public byte[] Command => command;

    /// <summary>Bytes that it takes up.</summary>
    public long Bytes => BytesOf(command.Length);

    /// <summary>Bytes that a read of this length takes up while it is held.</summary>
    public static long BytesOf(int length) => PlaceBytes + length;

    /// <summary>The one before it in its list; null for the first.</summary>
    public HeldRead? Before { get; set; }

    /// <summary>The one after it in its list; null for the last.</summary>
    public HeldRead? After { get; set; }

    /// <summary>It is answered, or nobody wants the answer any more.</summary>
    public bool HasEnded { get; set; }
}
