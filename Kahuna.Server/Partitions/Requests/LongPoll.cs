using Kahuna.Server.Partitions.Ports;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// A read whose answer is held back until something happens, in a list of those that wait for the same. Owned by a
/// <see cref="HeldPolls"/>.
/// </summary>
/// <param name="sink">Who gets the answer.</param>
/// <param name="number">The request's number there.</param>
/// <param name="key">What it waits for, as a number; for locks see <see cref="State.Locks.LockRows.Changes"/>.</param>
/// <param name="command">The read.</param>
internal sealed class LongPoll(ReplySink sink, uint number, long key, byte[] command)
{
    /// <summary>What a held read takes up besides its bytes, in lists and queue.</summary>
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
    public LongPoll? Before { get; set; }

    /// <summary>The one after it in its list; null for the last.</summary>
    public LongPoll? After { get; set; }

    /// <summary>It is answered, or its caller has gone.</summary>
    public bool HasEnded { get; set; }
}
