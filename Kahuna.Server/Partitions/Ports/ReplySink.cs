using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>
/// Port: where a loop's replies go: one client stream, or one unary call. The loop collects the replies of one turn in
/// a buffer that it owns (<see cref="Open"/>) and hands it over whole at the end of the turn (<see cref="Deliver"/>).
/// What was handed over and has not left is counted; a loop keeps reads back while it is too much.
/// </summary>
/// <param name="loops">Number of loops of the node.</param>
/// <param name="room">
/// The room for answers that wait; null: nothing ever waits, as the sink takes everything at once.
/// </param>
internal abstract class ReplySink(int loops, ReplyRoom? room = null)
{
    private readonly IRoomListener?[]? _keptBack = room is null ? null : new IRoomListener?[loops];
    private long _waitingBytes;
    private int _heldBack;

    /// <summary>The buffer that loop i fills during its turn; touched by that loop only.</summary>
    internal ByteBuffer?[] Open { get; } = new ByteBuffer?[loops];

    /// <summary>Number of replies in <see cref="Open"/>, per loop.</summary>
    internal int[] OpenCount { get; } = new int[loops];

    /// <summary>Bytes that were delivered and have not left. Any thread.</summary>
    public long WaitingBytes => Volatile.Read(ref _waitingBytes);

    /// <summary>Answers that loops hold back until there is something to say.</summary>
    public int HeldBack => Volatile.Read(ref _heldBack);

    /// <summary>Nobody gets what is delivered.</summary>
    public abstract bool IsClosed { get; }

    /// <summary>
    /// Null when a command of this caller may begin the session or idempotency key that it names. Otherwise the
    /// sentence of its refusal. Any thread.
    /// </summary>
    public virtual string? RefuseOpening(scoped in Command command) => null;

    /// <summary>
    /// Adds to the answers that are held back and to the bytes of their requests; negative numbers take them off. Any
    /// thread.
    /// </summary>
    public void HoldBack(int answers, long bytes)
    {
        InvariantException.Require(Interlocked.Add(ref _heldBack, answers) >= 0,
            "an answer that is held back is given once");
        HoldRequests(bytes);
    }

    /// <summary>
    /// Adds to the bytes that complete requests of this caller take up; a negative number gives them back. Any thread.
    /// </summary>
    public virtual void HoldRequests(long bytes)
    {
    }

    /// <summary>True when a request of this size may have its answer held back. Any thread.</summary>
    public virtual bool HasRoomToHold(long bytes) => true;

    /// <summary>
    /// Takes over a Replies frame, begun but not ended, with <paramref name="count"/> replies. Never blocks; from the
    /// loop's thread. The sink returns the buffer.
    /// </summary>
    public abstract void Deliver(ByteBuffer frame, int count);

    /// <summary>
    /// A read's answer of <paramref name="bytes"/> may be made now, besides <paramref name="openBytes"/> in the loop's
    /// own buffer.
    /// </summary>
    internal bool HasRoomForRead(int openBytes, long bytes) =>
        room is null || room.HasForRead(WaitingBytes + openBytes, bytes);

    /// <inheritdoc cref="ReplyRoom.HasForWrite"/>
    internal bool HasRoomForWrite(int openBytes, long bytes) =>
        room is null || room.HasForWrite(WaitingBytes + openBytes, bytes);

    /// <summary>
    /// The loop keeps reads of this sink back and wants to hear, once, when something has left. Something may have left
    /// before: the caller looks again after this.
    /// </summary>
    internal void TellWhenLeft(IRoomListener loop)
    {
        if (_keptBack is not null)
        {
            Interlocked.Exchange(ref _keptBack[loop.Number], loop);
        }
    }

    /// <summary>
    /// So many bytes were delivered and wait to leave; each of them is given to <see cref="Left"/> once.
    /// </summary>
    protected void Waits(int bytes)
    {
        Interlocked.Add(ref _waitingBytes, bytes);
        room?.Add(bytes);
    }

    /// <summary>
    /// So many bytes have left, or are dropped. Not under a lock of the sink: loops hear of it. Any thread.
    /// </summary>
    protected void Left(int bytes)
    {
        InvariantException.Require(Interlocked.Add(ref _waitingBytes, -bytes) >= 0, "bytes leave once");
        room?.Add(-bytes);
        if (_keptBack is null)
        {
            return;
        }

        foreach (ref IRoomListener? place in _keptBack.AsSpan())
        {
            if (Volatile.Read(ref place) is not null)
            {
                Interlocked.Exchange(ref place, null)?.PostRoom(this);
            }
        }
    }
}
