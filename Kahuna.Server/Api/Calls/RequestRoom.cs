namespace Kahuna.Server.Api.Calls;

/// <summary>
/// The memory that requests may take up while a part of them is still to come, or, in a room of their own, while complete ones wait: one of each connection, and one of the node. Without it a
/// connection could leave a thousand of the largest requests unfinished. Any thread.
/// </summary>
/// <param name="bytesMax">Bytes past which larger requests are refused, or not read.</param>
internal sealed class RequestRoom(long bytesMax)
{
    /// <summary>One connection: the largest frame of a stream (33 MB) and as much again for the calls beside it.</summary>
    public const long ConnectionBytesMax = 64L << 20;

    /// <summary>One node: four connections that use up all they may, or a thousand clients in the middle of a frame of 256 KiB.</summary>
    public const long NodeBytesMax = 256L << 20;

    /// <summary>A request of which no more than this has arrived is never refused, so that small calls are served when others have taken all the room.</summary>
    public const int SmallBytes = 64 * 1024;

    private long _used;
    private int _waiting;

    /// <summary>Bytes in use.</summary>
    public long Used => Volatile.Read(ref _used);

    public long BytesMax => bytesMax;

    /// <summary>Bytes that are left.</summary>
    public long Free => Math.Max(0, bytesMax - Used);

    /// <summary>Streams that are not read until there is room for their next request.</summary>
    public int Waiting => Volatile.Read(ref _waiting);

    /// <summary>Adds to the number of streams that wait; a negative number takes them off.</summary>
    public void Wait(int streams) => Interlocked.Add(ref _waiting, streams);

    /// <summary>So many bytes more, or less. False when that is more than there is room for; they count until they are taken back.</summary>
    public bool Add(long bytes) => Interlocked.Add(ref _used, bytes) <= bytesMax;
}
