using Kahuna.Wire.Watches;

namespace Kahuna.Server.Partitions.Changes;

/// <summary>Where a reader of a <see cref="ChangeLog"/> is. A value of its reader.</summary>
/// <param name="point">Everything up to here was read.</param>
internal struct ChangeCursor(ChangePoint point)
{
    /// <summary>Everything up to here was read.</summary>
    public ChangePoint Point = point;

    /// <summary>The segment to go on in; -1: unknown.</summary>
    public long Segment = -1;

    /// <summary>Where to go on in the segment.</summary>
    public int Offset = 0;

    /// <summary>The first segment that the last read looked at.</summary>
    public long CopiedFrom = -1;

    /// <summary>Goes on at the beginning of a segment.</summary>
    public void Seek(long segment) => (Segment, Offset) = (segment, 0);
}

/// <summary>What a read of a <see cref="ChangeLog"/> has found. Values are not stored.</summary>
internal enum ChangeRead
{
    /// <summary>Records were copied; there may be more.</summary>
    More,

    /// <summary>No record is left: the cursor is behind everything that is applied.</summary>
    End,

    /// <summary>
    /// Changes behind the cursor are gone. The cursor was moved forward to where changes are complete again.
    /// </summary>
    Compacted,

    /// <summary>The cursor was of an earlier epoch, and was moved to the beginning of the current one.</summary>
    EpochBegan,

    /// <summary>The cursor is of a later entry or epoch than this node has applied: read again later.</summary>
    Ahead,
}
