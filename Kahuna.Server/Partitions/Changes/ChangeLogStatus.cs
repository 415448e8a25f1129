using Kahuna.Server.Primitives;
using Kahuna.Wire.Watches;

namespace Kahuna.Server.Partitions.Changes;

/// <summary>What a <see cref="ChangeLog"/> has at one moment. A value.</summary>
internal struct ChangeLogStatus
{
    /// <summary>Changes up to here may be missing; all behind it are there.</summary>
    public ChangePoint Lost;

    /// <summary>This node has applied everything up to here; the epoch is the current one.</summary>
    public ChangePoint Applied;

    /// <summary>When this node last had everything that its leader had committed; 0: not yet.</summary>
    public NodeTime CaughtUpAt;

    /// <summary>The first segment.</summary>
    public long Head;

    /// <summary>The last segment that readers may look at.</summary>
    public long Tail;

    /// <summary>Bytes of the last segment that readers may look at.</summary>
    public int TailBytes;
}

/// <summary>
/// A part of a <see cref="ChangeLog"/>. The log's owner writes it; readers copy from it while they may.
/// </summary>
internal sealed class ChangeSegment(byte[] bytes)
{
    /// <summary>After every point.</summary>
    private static readonly ChangePoint s_none = ChangePoint.After(0, ulong.MaxValue, ulong.MaxValue);

    /// <summary>A segment without room.</summary>
    public static readonly ChangeSegment Empty = new([]);

    private int _used;

    /// <summary>The records.</summary>
    public byte[] Bytes { get; } = bytes;

    /// <summary>Bytes in use.</summary>
    public int Used
    {
        get => Volatile.Read(ref _used);
        set => Volatile.Write(ref _used, value);
    }

    /// <summary>Where the first record stands.</summary>
    public ChangePoint First { get; set; } = s_none;

    /// <summary>Where the last record stands.</summary>
    public ChangePoint Last { get; set; }

    /// <summary>Begins anew, empty. Readers of what was in it know already that it is gone.</summary>
    public void Reuse()
    {
        First = s_none;
        Used = 0;
    }
}

/// <summary>Is told when a <see cref="ChangeLog"/> has new changes. Implemented by the server of watches.</summary>
internal interface IChangeObserver
{
    /// <summary>
    /// Called at the end of a turn, by the loop's thread: it looks at a bounded number of changes, never waits, and
    /// never throws.
    /// </summary>
    void HasNews(ChangeLog log);
}
