using Kahuna.Server.Storage.Disk;

namespace Kahuna.Server.Storage;

/// <summary>Sizes and limits of the log. Immutable.</summary>
internal sealed record SegmentedLogOptions
{
    /// <summary>However small the limit is, a segment has space for a few records besides its header.</summary>
    private const long SegmentBytesMin = 4 * SegmentHeader.Bytes;

    /// <summary>
    /// Size of a segment. Preparing one costs a write of that size, and the log is cut in steps of that size.
    /// </summary>
    public long SegmentBytes { get; init; } = 64L << 20;

    /// <summary>
    /// Size of a log's first segment. Each following one doubles until <see cref="SegmentBytes"/>, so that a small node
    /// starts quickly and stays small.
    /// </summary>
    public long FirstSegmentBytes { get; init; } = 4L << 20;

    /// <summary>
    /// Bytes that the log keeps beyond the groups' own needs. A follower that lags by less is sent entries, one that
    /// lags by more a snapshot.
    /// </summary>
    public long KeepBytes { get; init; } = 512L << 20;

    /// <summary>Size of the log at which writes are refused.</summary>
    public long LogLimitBytes { get; init; } = 16L << 30;

    /// <summary>Free disk space, in percent, below which writes are refused.</summary>
    public int FreePercentMin { get; init; } = 5;

    /// <summary>
    /// Most bytes of one write; one batch always fits. Large enough to amortize a sync, small enough that the next
    /// write does not wait long.
    /// </summary>
    public int WriteBytesMax { get; init; } = 8 << 20;

    /// <summary>Random identity of the data directory's log, whether this opening creates or finds it.</summary>
    public ulong LogId { get; init; }

    /// <summary>Whether the log was created before. If so, a missing log is lost data.</summary>
    public bool LogMade { get; init; }

    /// <summary>
    /// <see cref="KeepBytes"/>, but at most half of the limit, so that unneeded entries never fill the log.
    /// </summary>
    public long KeptBytes => Math.Min(KeepBytes, LogLimitBytes / 2);

    /// <summary>
    /// Bytes that the log keeps for followers that are being restored: half of the limit, which leaves the other half
    /// for writes.
    /// </summary>
    public long HeldBytesMax => LogLimitBytes / 2;

    /// <summary>
    /// Capacity of a segment by its number. Even under a small limit there are several segments, because only whole
    /// ones are dropped.
    /// </summary>
    public long CapacityOf(ulong segment)
    {
        long bytesMax = Math.Min(
            SegmentBytes, Math.Max(LogLimitBytes / 4, SegmentBytesMin) / SegmentHeader.Bytes * SegmentHeader.Bytes);
        return segment > 32 ? bytesMax : Math.Min(bytesMax, FirstSegmentBytes << (int)(segment - 1));
    }

    /// <summary>How the segments are opened that are written.</summary>
    public DiskFileMode WriteMode { get; init; } = DiskFileMode.Appended;

    /// <summary>The clock by which syncs are measured; null: they are not.</summary>
    public TimeProvider? Time { get; init; }
}
