namespace Kahuna.Server.Api.Grpc;

/// <summary>
/// The memory that requests may take up while a part of them is still to come: one of each connection, and one of the node. Without it a connection could leave a
/// thousand of the largest requests unfinished. Any thread.
/// </summary>
/// <param name="bytesMax">Bytes past which larger requests are refused.</param>
internal sealed class RequestRoom(long bytesMax)
{
    /// <summary>One connection: the largest frame of a stream (33 MB) and as much again for the calls beside it.</summary>
    public const long ConnectionBytesMax = 64L << 20;

    /// <summary>One node: four connections that use up all they may, or a thousand clients in the middle of a frame of 256 KiB.</summary>
    public const long NodeBytesMax = 256L << 20;

    /// <summary>A request of which no more than this has arrived is never refused, so that small calls are served when others have taken all the room.</summary>
    public const int SmallBytes = 64 * 1024;

    private long _used;

    /// <summary>Bytes of requests that are not complete.</summary>
    public long Used => Volatile.Read(ref _used);

    public long BytesMax => bytesMax;

    /// <summary>So many bytes more, or less. False when that is more than there is room for; they count until they are taken back.</summary>
    public bool Add(long bytes) => Interlocked.Add(ref _used, bytes) <= bytesMax;
}
