using Grpc.Core;
using Kahuna.Server.Partitions;

namespace Kahuna.Server.Api.Calls;

/// <summary>
/// The reply of a unary call while its caller has not taken it: it counts in the node's room for answers and for its
/// connection, until it is disposed. Owned by the call, one thread at a time.
/// </summary>
internal readonly struct ReplyWait : IDisposable
{
    private readonly ConnectionShare? _connection;
    private readonly ReplyRoom? _room;
    private readonly int _bytes;

    private ReplyWait(ConnectionShare? connection, ReplyRoom? room, int bytes)
    {
        _connection = connection;
        _room = room;
        _bytes = bytes;
    }

    /// <summary>Counts a reply of <paramref name="bytes"/>, unless there is no room that counts.</summary>
    /// <exception cref="RpcException">RESOURCE_EXHAUSTED: the connection has as many replies waiting as it may. Nothing is counted then.</exception>
    public static ReplyWait Begin(ConnectionShare? connection, ReplyRoom? room, int bytes)
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
                $"The connection has {before >> 10} KiB of replies that it has not taken, as many as it may; this reply was dropped. Read the others first, or use another connection."));
        }

        room.Add(bytes);
        return new ReplyWait(connection, room, bytes);
    }

    /// <summary>The reply has left, or its call is over.</summary>
    public void Dispose()
    {
        _connection?.AddReply(-_bytes);
        _room?.Add(-_bytes);
    }
}
