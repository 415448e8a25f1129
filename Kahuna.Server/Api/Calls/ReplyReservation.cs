using Grpc.Core;
using Kahuna.Server.Partitions.Ports;

namespace Kahuna.Server.Api.Calls;

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
