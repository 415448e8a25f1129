using Grpc.Core;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Wire;

namespace Kahuna.Server.Api.Calls;

/// <summary>
/// The memory of one call's complete requests while they wait to be executed or answered. It counts against the budgets
/// of connection and node. A connection gets a sixteenth of the free bytes, 15 MiB of an empty node, so that eleven
/// greedy connections leave half of the budget free. Any thread.
/// </summary>
/// <param name="connection">The connection's budget.</param>
/// <param name="node">The node's budget.</param>
internal sealed class RequestReservation(RequestBudget connection, RequestBudget node)
{
    /// <summary>A connection gets this fraction of the free bytes.</summary>
    private const int Shares = 16;

    /// <summary>
    /// Largest request that a connection without waiting requests may always make: a frame of an ordinary client.
    /// Without it, a node full of others' requests would stop clients that send little.
    /// </summary>
    private const int OrdinaryBytes = Limits.FrameBytesTarget + RequestBudget.SmallBytes;

    /// <summary>
    /// First pause between two checks of the budget. Bytes are released in many places, so a stream polls.
    /// </summary>
    private static readonly TimeSpan s_pauseMin = TimeSpan.FromMilliseconds(20);

    /// <summary>
    /// The pause doubles up to this, so that ten thousand waiting streams cost a few thousand checks per second.
    /// </summary>
    private static readonly TimeSpan s_pauseMax = TimeSpan.FromSeconds(1);

    private long _bytes;

    /// <summary>Bytes of this call's requests.</summary>
    public long Bytes => Volatile.Read(ref _bytes);

    /// <summary>Adds bytes; a negative number releases them.</summary>
    public void Add(long bytes)
    {
        Interlocked.Add(ref _bytes, bytes);
        connection.Add(bytes);
        node.Add(bytes);
    }

    /// <summary>
    /// True if a request of this size fits. <see cref="RequestBudget.SmallBytes"/> of each call always fit. A
    /// connection without waiting requests may make one of ordinary size in any case, and a larger one if the node has
    /// the bytes left.
    /// </summary>
    public bool Fits(long bytes)
    {
        long free = node.Free;
        return Bytes + bytes <= RequestBudget.SmallBytes
            || connection.Used + bytes <= free / Shares
            || (connection.Used <= RequestBudget.SmallBytes && bytes <= Math.Max(free, OrdinaryBytes));
    }

    /// <summary>Waits until a request of this size fits.</summary>
    /// <exception cref="OperationCanceledException">The call is over.</exception>
    public async Task WaitUntilFitsAsync(long bytes, CancellationToken ended)
    {
        node.AddWaiting(1);
        try
        {
            for (TimeSpan pause = s_pauseMin; !Fits(bytes); pause = pause < s_pauseMax / 2 ? 2 * pause : s_pauseMax)
            {
                await Task.Delay(pause, ended).ConfigureAwait(false);
            }
        }
        finally
        {
            node.AddWaiting(-1);
        }
    }
}

/// <summary>
/// The memory of a unary reply that its caller has not read. It counts against the budgets of node and connection until
/// it is disposed. Owned by the call, one thread at a time.
/// </summary>
internal readonly struct ReplyReservation : IDisposable
{
    private readonly ConnectionQuota? _connection;
    private readonly ReplyRoom? _room;
    private readonly int _bytes;

    private ReplyReservation(ConnectionQuota? connection, ReplyRoom? room, int bytes)
    {
        _connection = connection;
        _room = room;
        _bytes = bytes;
    }

    /// <summary>Counts a reply of <paramref name="bytes"/>; does nothing if no budget is set.</summary>
    /// <exception cref="RpcException">RESOURCE_EXHAUSTED: the connection has its maximum of unread replies. Nothing is
    /// counted then.</exception>
    public static ReplyReservation Begin(ConnectionQuota? connection, ReplyRoom? room, int bytes)
    {
        if (room is null)
        {
            return default;
        }

        long before = (connection?.AddReply(bytes) ?? bytes) - bytes;
        if (!room.HasForCall(before, bytes))
        {
            connection?.AddReply(-bytes);
            throw new RpcException(new Status(
                StatusCode.ResourceExhausted,
                $"The connection has {before >> 10} KiB of unread replies, its limit; this reply was dropped. Read "
                    + $"the others first, or use another connection."));
        }

        room.Add(bytes);
        return new ReplyReservation(connection, room, bytes);
    }

    /// <summary>Releases the bytes: the reply was sent, or its call is over.</summary>
    public void Dispose()
    {
        _connection?.AddReply(-_bytes);
        _room?.Add(-_bytes);
    }
}

/// <summary>
/// A budget of bytes for requests: one for incomplete and one for waiting requests, of each connection and of the node.
/// Without it, a connection could leave a thousand of the largest requests unfinished. Any thread.
/// </summary>
/// <param name="bytesMax">Bytes above which larger requests are refused or not read.</param>
internal sealed class RequestBudget(long bytesMax)
{
    /// <summary>
    /// Per connection: the largest frame of a stream (33 MB), and as much again for concurrent calls.
    /// </summary>
    public const long ConnectionBytesMax = 64L << 20;

    /// <summary>
    /// Per node: four connections that use their whole budget, or a thousand clients in the middle of a frame of 256
    /// KiB.
    /// </summary>
    public const long NodeBytesMax = 256L << 20;

    /// <summary>
    /// A request of which no more has arrived is never refused, so that small calls are served when others have used up
    /// the budget.
    /// </summary>
    public const int SmallBytes = 64 * 1024;

    private long _used;
    private int _waiting;

    /// <summary>Bytes in use.</summary>
    public long Used => Volatile.Read(ref _used);

    public long BytesMax => bytesMax;

    /// <summary>Bytes left.</summary>
    public long Free => Math.Max(0, bytesMax - Used);

    /// <summary>Streams that are not read until their next request fits.</summary>
    public int Waiting => Volatile.Read(ref _waiting);

    /// <summary>Adds to the number of waiting streams; a negative number subtracts.</summary>
    public void AddWaiting(int streams) => Interlocked.Add(ref _waiting, streams);

    /// <summary>
    /// Adds bytes; a negative number subtracts. False if the budget is exceeded; the bytes count all the same until
    /// they are subtracted.
    /// </summary>
    public bool Add(long bytes) => Interlocked.Add(ref _used, bytes) <= bytesMax;
}
