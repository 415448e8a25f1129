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

    private ClientBatch()
    {
    }

    /// <summary>The bytes that the operations point into; owned by the batch.</summary>
    public ByteBuffer Buffer { get; private set; } = null!;

    /// <summary>Where the answers go.</summary>
    public ReplySink Sink { get; private set; } = null!;

    /// <summary>Monotonic ms at which the batch came in.</summary>
    public long ArrivalMs { get; private set; }

    public ReadOnlySpan<ClientOperation> Operations => _operations.AsSpan(0, _count);

    /// <summary>Operations that this node is to bring to the leader; the door's alone.</summary>
    public List<ClientOperation> Forwarded { get; } = [];

    /// <summary>Takes an empty batch, held once. The batch takes over the buffer.</summary>
    public static ClientBatch Rent(ByteBuffer buffer, ReplySink sink, long arrivalMs)
    {
        ClientBatch? batch;
        lock (s_idleLock)
        {
            s_idle.TryPop(out batch);
        }

        batch ??= new ClientBatch();
        batch.Buffer = buffer;
        batch.Sink = sink;
        batch.ArrivalMs = arrivalMs;
        batch._count = 0;
        batch.Forwarded.Clear();
        batch._holders = 1;
        sink.HoldRequests(buffer.Length);
        return batch;
    }

    public void Add(in ClientOperation operation)
    {
        if (_count == _operations.Length)
        {
            Array.Resize(ref _operations, _count * 2);
        }

        _operations[_count++] = operation;
    }

    /// <summary>One more holder, who calls <see cref="Release"/> in turn.</summary>
    public void Hold(int holders = 1) => Interlocked.Add(ref _holders, holders);

    public ReadOnlySpan<byte> Command(in ClientOperation operation) =>
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
