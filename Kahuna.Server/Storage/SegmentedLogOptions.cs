namespace Kahuna.Server.Storage;

/// <summary>Sizes and limits of the log. Immutable.</summary>
internal sealed record SegmentedLogOptions
{
    /// <summary>Size of a segment. Preparing one costs a write of that size, and cutting the log frees no less than that.</summary>
    public long SegmentBytes { get; init; } = 64L << 20;

    /// <summary>
    /// Size of a log's first segment; each following one has twice the size until <see cref="SegmentBytes"/> is reached, so that a
    /// small node starts quickly and stays small.
    /// </summary>
    public long FirstSegmentBytes { get; init; } = 4L << 20;

    /// <summary>Past this size of the log, writes are refused.</summary>
    public long LogLimitBytes { get; init; } = 16L << 30;

    /// <summary>Below this part of the disk free, in percent, writes are refused.</summary>
    public int FreePercentMin { get; init; } = 5;

    /// <summary>
    /// One write takes submitted batches up to this size (one always fits): large enough that a sync's cost vanishes, small enough
    /// that what waits behind it does not wait long.
    /// </summary>
    public int WriteBytesMax { get; init; } = 8 << 20;

    /// <summary>Identity of a log that is made by this opening; should be random, so that two logs never share it.</summary>
    public ulong NewLogId { get; init; }

    /// <summary>Capacity of a segment by its number.</summary>
    public long CapacityOf(ulong segment) =>
        segment > 32 ? SegmentBytes : Math.Min(SegmentBytes, FirstSegmentBytes << (int)(segment - 1));
}
