using System.Diagnostics;
using Kahuna.Server.Primitives;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>
/// The checked operations of one frame from a client, or of one unary call. Filled by the door, then shared read-only
/// by the loops it concerns; each holder calls <see cref="Release"/> once, and the last one gives everything back.
/// </summary>
internal sealed class ClientBatch
{
    private const int IdleMax = 256;
    private const int RetainOperationsMax = 4096;
    private static readonly Stack<ClientBatch> s_idle = new(IdleMax);
    private static readonly Lock s_idleLock = new();

    private ClientOperation[] _operations = new ClientOperation[64];
    private int _count;
    private int _holders;
    private uint _stamp;

    private ClientBatch()
    {
    }

    /// <summary>The bytes that the operations point into; owned by the batch.</summary>
    public ByteBuffer Buffer { get; private set; } = null!;

    /// <summary>Where the answers go.</summary>
    public ReplySink Sink { get; private set; } = null!;

    /// <summary>Monotonic ms at which the batch came in.</summary>
    public NodeTime Arrival { get; private set; }

    public ReadOnlySpan<ClientOperation> Operations => _operations.AsSpan(0, _count);

    /// <summary>Operations that this node is to bring to the leader; the door's alone.</summary>
    public List<ClientOperation> Forwarded { get; } = [];

    /// <summary>Takes an empty batch, held once. The batch takes over the buffer.</summary>
    /// <param name="buffer">The bytes of the operations.</param>
    /// <param name="sink">Where the answers go.</param>
    /// <param name="arrival">Now.</param>
    /// <param name="stamp">The same moment, as <see cref="OperationTimes.Stamp"/> tells it.</param>
    public static ClientBatch Rent(ByteBuffer buffer, ReplySink sink, NodeTime arrival, uint stamp = 0)
    {
        ClientBatch? batch;
        lock (s_idleLock)
        {
            s_idle.TryPop(out batch);
        }

        batch ??= new ClientBatch();
        batch.Buffer = buffer;
        batch.Sink = sink;
        batch.Arrival = arrival;
        batch._stamp = stamp;
        batch._count = 0;
        batch.Forwarded.Clear();
        batch._holders = 1;
        sink.HoldRequests(buffer.Length);
        return batch;
    }

    /// <summary>Adds an operation, and notes what its answer will be counted as.</summary>
    public void Add(in ClientOperation operation)
    {
        if (_count == _operations.Length)
        {
            Array.Resize(ref _operations, _count * 2);
        }

        ReadOnlySpan<byte> command = Command(operation);
        _operations[_count++] = command.IsEmpty
            ? operation
            : operation with
            {
                Number = operation.Number with { Stamp = _stamp, Kind = command[0], Durability = command[1] },
            };
    }

    /// <summary>One more holder, who calls <see cref="Release"/> in turn.</summary>
    public void Hold(int holders = 1) => Interlocked.Add(ref _holders, holders);

    public Span<byte> Command(in ClientOperation operation) =>
        Buffer.Array.AsSpan(operation.Offset, operation.Length);

    public void Release()
    {
        int holders = Interlocked.Decrement(ref _holders);
        InvariantException.Require(holders >= 0, "a batch is released as often as it is held");
        if (holders > 0)
        {
            return;
        }

        Sink.HoldRequests(-Buffer.Length);
        Buffer.Return();
        Buffer = null!;
        Sink = null!;
        if (_operations.Length > RetainOperationsMax)
        {
            return;
        }

        lock (s_idleLock)
        {
            if (s_idle.Count < IdleMax)
            {
                s_idle.Push(this);
            }
        }
    }
}

/// <summary>
/// One checked operation of a <see cref="ClientBatch"/>: where its command lies in the batch's buffer, and how to
/// answer it.
/// </summary>
/// <param name="Offset">Offset of the command.</param>
/// <param name="Length">Length of the command.</param>
/// <param name="Number">The request's number on its stream, and what its answer is counted as.</param>
/// <param name="WaitMs">How long it may wait before it is proposed; 0: no limit.</param>
/// <param name="GroupIndex">Index of its group (<see cref="GroupLayout"/>).</param>
/// <param name="IsRead">It changes nothing.</param>
internal readonly record struct ClientOperation(int Offset, int Length, RequestTag Number, uint WaitMs,
    ushort GroupIndex, bool IsRead);

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

    /// <summary>Requests of the next frame are traced. Read and written by the thread that takes requests in.</summary>
    public bool HasTraces { get; protected set; }

    /// <summary>
    /// Takes the items of a Traces frame (<see cref="Wire.Frames.TraceFrame"/>); false: they are malformed.
    /// </summary>
    public virtual bool TakeTraces(ReadOnlySpan<byte> items, int count) => false;

    /// <summary>While <see cref="HasTraces"/>: where the trace of a request is kept; 0: it is not traced.</summary>
    public virtual ushort TraceOf(uint number) => 0;

    /// <summary>
    /// While <see cref="HasTraces"/>: the client's activity of a request; the default: there is none.
    /// </summary>
    public virtual ActivityContext TracedParent(uint number) => default;

    /// <summary>The frame whose requests are traced was read.</summary>
    public virtual void EndTraces()
    {
    }

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

/// <summary>
/// The memory that answers of one node may take up while they wait to leave. Every stream gets a share of what is free,
/// so that those who do not read cannot take it all: with n such streams at least 8/(n + 8) of the room stays free for
/// others. Any thread.
/// </summary>
/// <param name="bytesMax">
/// Bytes that may wait in the whole node, small answers of each stream (<see cref="SmallBytes"/>) not counted.
/// </param>
internal sealed class ReplyRoom(long bytesMax = ReplyRoom.BytesMaxDefault)
{
    /// <summary>
    /// The room of a node: 32 streams with a full share each, and less than the log's own buffers of a busy node.
    /// </summary>
    public const long BytesMaxDefault = 128L << 20;

    /// <summary>
    /// Answer bytes of one stream past which its reads wait: 16 frames, which fill a connection of 1 GB/s and 4 ms,
    /// while an answer that waits is one that nobody reads.
    /// </summary>
    public const int StreamBytesMax = 4 << 20;

    /// <summary>
    /// Each stream has this much in any case: a quarter of a frame, so that a client that reads is answered even when
    /// others have taken all the rest.
    /// </summary>
    public const int SmallBytes = 64 * 1024;

    /// <summary>
    /// Answer bytes of one stream past which a write's answer with a value is replaced by "end unknown". A write cannot
    /// wait after it was applied; this is as much as the stream could have uploaded uncommitted
    /// (<see cref="LoopOptions.UncommittedBytesMax"/>).
    /// </summary>
    public const long WrittenBytesMax = 64L << 20;

    /// <summary>The answer of a write that returns no value.</summary>
    private const int WithoutValueBytes = Frame.ReplyHeaderBytes + Outcome.HeaderBytes;

    /// <summary>A stream gets this part of what is free.</summary>
    private const int Shares = 8;

    /// <summary>
    /// Unary calls of one connection get this part of what is free: a third of an empty room at most, 40 MiB.
    /// </summary>
    private const int ConnectionShares = 2;

    private long _used;

    /// <summary>Bytes that wait to leave.</summary>
    public long Used => Volatile.Read(ref _used);

    public long BytesMax => bytesMax;

    private long Free => Math.Max(0, bytesMax - Used);

    /// <summary>Adds to the bytes that wait to leave; a negative number takes them off.</summary>
    public void Add(long bytes) => Interlocked.Add(ref _used, bytes);

    /// <summary>
    /// A read's answer of <paramref name="bytes"/> may be made for a stream of which <paramref name="waiting"/> bytes
    /// wait. An answer larger than a share is made for a stream that has taken nearly all others.
    /// </summary>
    public bool HasForRead(long waiting, long bytes)
    {
        long total = waiting + bytes;
        return total <= SmallBytes || total <= Math.Min(StreamBytesMax, Free / Shares)
            || (waiting <= SmallBytes && bytes <= Free);
    }

    /// <summary>
    /// As <see cref="HasForRead"/>, for the answer of a write, which is applied already. An answer without a value
    /// always passes: the requests that a stream may have unanswered bound it
    /// (<see cref="Limits.InFlightPerStreamMax"/>).
    /// </summary>
    public bool HasForWrite(long waiting, long bytes)
    {
        long total = waiting + bytes;
        return bytes <= WithoutValueBytes || total <= SmallBytes || (total <= WrittenBytesMax && bytes <= Free);
    }

    /// <summary>
    /// A unary call's reply of <paramref name="bytes"/> may wait for a connection of which <paramref name="waiting"/>
    /// bytes of such replies wait. A connection has <see cref="SmallBytes"/> in any case. A larger reply was admitted
    /// when it was made (<see cref="HasForRead"/>).
    /// </summary>
    public bool HasForCall(long waiting, long bytes) =>
        bytes > SmallBytes || waiting + bytes <= SmallBytes || waiting + bytes <= Free / ConnectionShares;
}

/// <summary>A loop as a client's sink sees it: it keeps reads back until answers have left. Any thread.</summary>
internal interface IRoomListener
{
    /// <summary>Number of the loop on its node.</summary>
    int Number { get; }

    /// <summary>Answers of a client have left, or the client has, and this loop wanted to hear of it.</summary>
    void PostRoom(ReplySink sink);
}
