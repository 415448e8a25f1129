using Kahuna.Client.Wire;

namespace Kahuna.Server.Api.Calls;

/// <summary>
/// The memory that one call's complete requests take up while they wait to be carried out or answered. It counts for the
/// connection and for the node. A connection gets a sixteenth of what is free, 15 MiB of an empty node, so that eleven
/// greedy connections leave half of the room free. Any thread.
/// </summary>
/// <param name="connection">The room of the call's connection.</param>
/// <param name="node">The room of the node.</param>
internal sealed class RequestHold(RequestRoom connection, RequestRoom node)
{
    /// <summary>A connection gets this part of what is free.</summary>
    private const int Shares = 16;

    /// <summary>
    /// The largest request that fits without regard to the node when its connection holds nothing: a frame of an ordinary
    /// client. Without it, a node full of others' requests would stop clients that send little.
    /// </summary>
    private const int OrdinaryBytes = Limits.FrameBytesTarget + RequestRoom.SmallBytes;

    /// <summary>
    /// The pause before the first look for room. Room comes back from many places, so a stream polls for it.
    /// </summary>
    private static readonly TimeSpan s_pauseMin = TimeSpan.FromMilliseconds(20);

    /// <summary>
    /// The pause doubles up to this, so that ten thousand streams that wait for long cost a few thousand looks per second.
    /// </summary>
    private static readonly TimeSpan s_pauseMax = TimeSpan.FromSeconds(1);

    private long _bytes;

    /// <summary>Bytes that this call's requests take up.</summary>
    public long Bytes => Volatile.Read(ref _bytes);

    /// <summary>Adds to the bytes that are held; a negative number gives them back.</summary>
    public void Add(long bytes)
    {
        Interlocked.Add(ref _bytes, bytes);
        connection.Add(bytes);
        node.Add(bytes);
    }

    /// <summary>
    /// True when a request of this size fits. <see cref="RequestRoom.SmallBytes"/> of each call always do. A connection
    /// that holds nothing gets one request of an ordinary size in any case, and a larger one while the node has the room.
    /// </summary>
    public bool HasRoom(long bytes)
    {
        long free = node.Free;
        return Bytes + bytes <= RequestRoom.SmallBytes
            || connection.Used + bytes <= free / Shares
            || (connection.Used <= RequestRoom.SmallBytes && bytes <= Math.Max(free, OrdinaryBytes));
    }

    /// <summary>Waits until a request of this size fits.</summary>
    /// <exception cref="OperationCanceledException">The call is over.</exception>
    public async Task WaitForRoomAsync(long bytes, CancellationToken ended)
    {
        node.Wait(1);
        try
        {
            for (TimeSpan pause = s_pauseMin; !HasRoom(bytes); pause = pause < s_pauseMax / 2 ? 2 * pause : s_pauseMax)
            {
                await Task.Delay(pause, ended).ConfigureAwait(false);
            }
        }
        finally
        {
            node.Wait(-1);
        }
    }
}
