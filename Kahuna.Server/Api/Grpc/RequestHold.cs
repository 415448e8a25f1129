namespace Kahuna.Server.Api.Grpc;

/// <summary>
/// What complete requests of one call take up while they wait to be carried out, or to be answered: counted here, for the connection and for the node. A connection gets a part of what is free,
/// 15 MiB of an empty node, so that half of the room stays free beside eleven connections that take all they may. Any thread.
/// </summary>
/// <param name="connection">The room of the call's connection.</param>
/// <param name="node">The room of the node.</param>
internal sealed class RequestHold(RequestRoom connection, RequestRoom node)
{
    /// <summary>A connection gets this part of what is free.</summary>
    private const int Shares = 16;

    /// <summary>Between two looks for room. There are many reasons for which there may be some, on all connections, and a stream that waits is one that sends too much.</summary>
    private static readonly TimeSpan s_pause = TimeSpan.FromMilliseconds(20);

    private long _bytes;

    /// <summary>Bytes that this call's requests take up.</summary>
    public long Bytes => Volatile.Read(ref _bytes);

    /// <summary>So many bytes more, or less.</summary>
    public void Add(long bytes)
    {
        Interlocked.Add(ref _bytes, bytes);
        connection.Add(bytes);
        node.Add(bytes);
    }

    /// <summary>
    /// There is room for a request of so many bytes. Small ones (<see cref="RequestRoom.SmallBytes"/> of each call) always fit, and one that is larger than a share when nothing else of its
    /// connection waits.
    /// </summary>
    public bool HasRoom(long bytes)
    {
        long free = node.Free;
        return Bytes + bytes <= RequestRoom.SmallBytes
            || connection.Used + bytes <= free / Shares
            || (connection.Used <= RequestRoom.SmallBytes && bytes <= free);
    }

    /// <summary>Waits until there is room for a request of so many bytes.</summary>
    /// <exception cref="OperationCanceledException">The call is over.</exception>
    public async Task WaitForRoomAsync(long bytes, CancellationToken ended)
    {
        node.Wait(1);
        try
        {
            while (!HasRoom(bytes))
            {
                await Task.Delay(s_pause, ended).ConfigureAwait(false);
            }
        }
        finally
        {
            node.Wait(-1);
        }
    }
}
