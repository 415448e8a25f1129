using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Partitions.Requests;

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
