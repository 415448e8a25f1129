using Kahuna.Wire;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Partitions.Ports;

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
    /// Each stream has this much in any case: a quarter of a frame, so that whoever reads is answered also when others
    /// have taken all the rest.
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
