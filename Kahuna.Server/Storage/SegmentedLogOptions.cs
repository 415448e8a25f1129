namespace Kahuna.Server.Storage;

/// <summary>Sizes and limits of the log. Immutable.</summary>
internal sealed record SegmentedLogOptions
{
    /// <summary>However small the limit is, a segment has room for a few records beside its header.</summary>
    private const long SegmentBytesMin = 4 * SegmentHeader.Bytes;

    /// <summary>Size of a segment. Preparing one costs a write of that size, and cutting the log frees no less than that.</summary>
    public long SegmentBytes { get; init; } = 64L << 20;

    /// <summary>
    /// Size of a log's first segment; each following one has twice the size until <see cref="SegmentBytes"/> is reached, so that a
    /// small node starts quickly and stays small.
    /// </summary>
    public long FirstSegmentBytes { get; init; } = 4L << 20;

    /// <summary>
    /// What the log keeps although no group needs it for itself: a follower that lags no more than this is sent entries, and one that lags more a
    /// snapshot.
    /// </summary>
    public long KeepBytes { get; init; } = 512L << 20;

    /// <summary>Past this size of the log, writes are refused.</summary>
    public long LogLimitBytes { get; init; } = 16L << 30;

    /// <summary>Below this part of the disk free, in percent, writes are refused.</summary>
    public int FreePercentMin { get; init; } = 5;

    /// <summary>
    /// One write takes submitted batches up to this size (one always fits): large enough that a sync's cost vanishes, small enough
    /// that what waits behind it does not wait long.
    /// </summary>
    public int WriteBytesMax { get; init; } = 8 << 20;

    /// <summary>Identity of the data directory's log, of one that is made by this opening as of one that is found; random, so that two logs never share it.</summary>
    public ulong LogId { get; init; }

    /// <summary>Whether the log was made before, so that an opening without one has lost it.</summary>
    public bool LogMade { get; init; }

    /// <summary><see cref="KeepBytes"/>, but not so much that the limit is reached by what nobody needs.</summary>
    public long KeptBytes => Math.Min(KeepBytes, LogLimitBytes / 2);

    /// <summary>What the log keeps for followers that are being restored: half of the limit, so that the other half is left for writes.</summary>
    public long HeldBytesMax => LogLimitBytes / 2;

    /// <summary>Capacity of a segment by its number. Below a small limit there are several segments still, because cutting drops whole ones.</summary>
    public long CapacityOf(ulong segment)
    {
        long bytesMax = Math.Min(SegmentBytes, Math.Max(LogLimitBytes / 4, SegmentBytesMin) / SegmentHeader.Bytes * SegmentHeader.Bytes);
        return segment > 32 ? bytesMax : Math.Min(bytesMax, FirstSegmentBytes << (int)(segment - 1));
    }
}
