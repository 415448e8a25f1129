using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Watches;

namespace Kahuna.Server.Partitions.Changes;

/// <summary>
/// The newest changes of one group, as this node has applied them, in bounded memory. Watches read it at their own
/// pace; the oldest changes make room for new ones. The group's owner writes and never waits. Any thread reads: it
/// copies, and then looks whether what it copied was still there.
/// </summary>
/// <remarks>
/// Records lie in segments that are used again in turn. Readers see nothing of an entry before
/// <see cref="Publish"/>, so nothing of a transaction without the rest of it.
/// </remarks>
internal sealed class ChangeLog : IChangeLog
{
    /// <summary>Bytes of a segment; a longer record has one of its own.</summary>
    public const int SegmentBytes = 256 << 10;

    private readonly long _bytesMax;
    private readonly int _segmentBytes;

    /// <summary>Segment number n, counted from the start on, lies at place n modulo their greatest number.</summary>
    private readonly ChangeSegment?[] _segments;

    /// <summary>Odd while the owner changes what readers rely on.</summary>
    private int _version;
    private ChangeLogStatus _status;
    private IChangeObserver? _observer;

    // Of the owner only.
    private long _head;
    private long _tail;
    private long _bytes;
    private bool _isToldDue;

    /// <summary>An empty log of a group.</summary>
    /// <param name="group">The group.</param>
    /// <param name="bytesMax">Bytes of all segments; at least two are kept.</param>
    /// <param name="segmentBytes">Bytes of a segment.</param>
    public ChangeLog(GroupId group, long bytesMax, int segmentBytes = SegmentBytes)
    {
        Group = group;
        _segmentBytes = segmentBytes;
        _bytesMax = Math.Max(bytesMax, 2L * segmentBytes);
        _segments = new ChangeSegment?[checked((int)(_bytesMax / segmentBytes)) + 1];
        Restart(default, default);
    }

    /// <summary>The group.</summary>
    public GroupId Group { get; }

    /// <summary>Bytes that the segments take up. Any thread.</summary>
    public long Bytes => Volatile.Read(ref _bytes);

    /// <summary>Who is told of news; null: nobody. Any thread.</summary>
    public IChangeObserver? Observer
    {
        get => Volatile.Read(ref _observer);
        set => Volatile.Write(ref _observer, value);
    }

    /// <summary>What can be read. Any thread.</summary>
    public ChangeLogStatus Status
    {
        get
        {
            SpinWait spin = default;
            while (true)
            {
                int version = Volatile.Read(ref _version);
                ChangeLogStatus status = _status;
                Interlocked.MemoryBarrier();
                if ((version & 1) == 0 && version == Volatile.Read(ref _version))
                {
                    return status;
                }

                spin.SpinOnce(sleep1Threshold: -1);
            }
        }
    }

    // ---- The owner

    /// <inheritdoc/>
    public void Restart(Epoch epoch, LogIndex applied)
    {
        ChangePoint point = ChangePoint.After(Group.Value, epoch.Value, applied.Value);
        _head = ++_tail;
        Volatile.Write(ref _segments[_tail % _segments.Length], ChangeSegment.Empty);
        BeginUpdate();
        _status = new ChangeLogStatus { Lost = point, Applied = point, Head = _head, Tail = _tail };
        EndUpdate();
        Volatile.Write(ref _bytes, 0);
        _isToldDue = true;
    }

    /// <inheritdoc/>
    public void Changed(in ChangePosition position, scoped in Change change)
    {
        if (change.Kind is ChangeKind.HistoryCut or ChangeKind.Forgotten)
        {
            return;
        }

        int length = ChangeRecord.LengthOf(change.Key.Length, change.Value.Length);
        ChangeSegment segment = Segment(_tail)!;
        if (segment.Used + length > segment.Bytes.Length)
        {
            NextSegment(length);
            segment = Segment(_tail)!;
        }

        ChangeRecord.Write(segment.Bytes.AsSpan(segment.Used, length), position.N, position.Index.Value, in change);
        ChangePoint point = new(Group.Value, position.Epoch.Value, position.Index.Value, (uint)position.N);
        if (segment.Used == 0)
        {
            segment.First = point;
        }

        segment.Used += length;
        segment.Last = point;
    }

    /// <inheritdoc/>
    public void Publish(LogIndex applied)
    {
        BeginUpdate();
        _status.Applied = ChangePoint.After(Group.Value, _status.Applied.Epoch, applied.Value);
        _status.Tail = _tail;
        _status.TailBytes = Segment(_tail)!.Used;
        EndUpdate();
        _isToldDue = true;
    }

    /// <inheritdoc/>
    public void CaughtUp(NodeTime at)
    {
        BeginUpdate();
        _status.CaughtUpAt = at;
        EndUpdate();
    }

    /// <inheritdoc/>
    public void Announce()
    {
        if (_isToldDue && Observer is { } observer)
        {
            _isToldDue = false;
            observer.HasNews(this);
        }
    }

    // ---- Readers

    /// <summary>
    /// Copies whole records (<see cref="ChangeRecord"/>) behind a cursor, in order, and moves it. Records of one read
    /// are of one segment, so that they lie directly before where the cursor is then. Any thread; the cursor is the
    /// caller's.
    /// </summary>
    /// <param name="cursor">Where to begin; behind what was copied afterwards.</param>
    /// <param name="target">Takes the records.</param>
    /// <param name="bytesMax">Copy about this many bytes; at least one record is copied.</param>
    public ChangeRead Read(ref ChangeCursor cursor, ByteBuffer target, int bytesMax)
    {
        while (true)
        {
            ChangeLogStatus status = Status;
            if (cursor.Point.Epoch < status.Applied.Epoch)
            {
                cursor = new ChangeCursor(ChangePoint.After(Group.Value, status.Applied.Epoch, 0));
                return ChangeRead.EpochBegan;
            }

            if (cursor.Point.Epoch > status.Applied.Epoch || cursor.Point.Index > status.Applied.Index)
            {
                return ChangeRead.Ahead;
            }

            if (cursor.Point < status.Lost)
            {
                // Behind all of the entry: not in the middle of a transaction.
                cursor = new ChangeCursor(status.Lost with { N = ChangePoint.AllOfEntry });
                return ChangeRead.Compacted;
            }

            int length = target.Length;
            ChangeCursor next = cursor;
            bool isCopied = TryCopy(in status, ref next, target, bytesMax);
            Interlocked.MemoryBarrier();
            ChangeLogStatus after = Status;
            if (isCopied && next.CopiedFrom >= after.Head && cursor.Point >= after.Lost)
            {
                cursor = next;
                return target.Length > length ? ChangeRead.More : ChangeRead.End;
            }

            // It was overwritten meanwhile.
            target.Advance(length - target.Length);
        }
    }

    /// <summary>
    /// The log is full, and the next quarter of it to go has what a cursor reads next. Any thread; the cursor is the
    /// caller's.
    /// </summary>
    public bool IsNearLost(scoped in ChangeCursor cursor)
    {
        ChangeLogStatus status = Status;
        return Bytes + _segmentBytes > _bytesMax
            && cursor.Segment >= 0
            && (cursor.Segment - status.Head) * 4 <= status.Tail - status.Head;
    }

    /// <summary>Copies from the segments up to the published end. False: a segment is gone.</summary>
    private bool TryCopy(in ChangeLogStatus status, ref ChangeCursor cursor, ByteBuffer target, int bytesMax)
    {
        if (cursor.Segment < status.Head || cursor.Segment > status.Tail)
        {
            cursor.Seek(Find(in status, cursor.Point));
        }

        cursor.CopiedFrom = cursor.Segment;
        int left = bytesMax;
        bool isFirst = true;
        while (true)
        {
            // There is none yet where all segments have just been dropped.
            if (Segment(cursor.Segment) is not { } segment)
            {
                return false;
            }

            byte[] bytes = segment.Bytes;
            int end = cursor.Segment == status.Tail ? status.TailBytes : segment.Used;
            if (end > bytes.Length)
            {
                return false;
            }

            while (cursor.Offset < end)
            {
                ReadOnlySpan<byte> rest = bytes.AsSpan(cursor.Offset, end - cursor.Offset);
                if (!ChangeRecord.TryLength(rest, out int length))
                {
                    return false;
                }

                ChangePoint point = ChangeRecord.PointOf(rest, Group.Value, status.Applied.Epoch);
                if (point > cursor.Point)
                {
                    if (!isFirst && length > left)
                    {
                        return true;
                    }

                    rest[..length].CopyTo(target.Take(length));
                    left -= length;
                    isFirst = false;
                    cursor.Point = point;
                }

                cursor.Offset += length;
            }

            if (cursor.Segment >= status.Tail)
            {
                cursor.Point = status.Applied;
                return true;
            }

            if (!isFirst)
            {
                return true;
            }

            cursor.Seek(cursor.Segment + 1);
        }
    }

    /// <summary>The last segment that begins at or before a point; it may have been overwritten meanwhile.</summary>
    private long Find(in ChangeLogStatus status, ChangePoint point)
    {
        (long low, long high) = (status.Head, status.Tail);
        while (low < high)
        {
            long middle = low + ((high - low + 1) / 2);
            if (Segment(middle) is { } segment && segment.First <= point)
            {
                low = middle;
            }
            else
            {
                high = middle - 1;
            }
        }

        return low;
    }

    private ChangeSegment? Segment(long number) => Volatile.Read(ref _segments[number % _segments.Length]);

    /// <summary>Opens a segment for a record; the oldest ones go when there are too many bytes.</summary>
    private void NextSegment(int length)
    {
        int bytes = Math.Max(length, _segmentBytes);
        ChangeSegment? next = null;
        while (_head <= _tail && (_bytes + bytes > _bytesMax || _tail - _head + 2 > _segments.Length))
        {
            ChangeSegment oldest = Segment(_head)!;
            DropOldest(oldest);
            Volatile.Write(ref _bytes, _bytes - oldest.Bytes.Length);
            next = oldest.Bytes.Length == bytes ? oldest : next;
        }

        if (next is null)
        {
            next = new ChangeSegment(PinnedMemory.Allocate<byte>(bytes));
        }
        else
        {
            next.Reuse();
        }

        _tail++;
        Volatile.Write(ref _bytes, _bytes + bytes);
        Volatile.Write(ref _segments[_tail % _segments.Length], next);
    }

    private void DropOldest(ChangeSegment oldest)
    {
        _head++;
        BeginUpdate();
        _status.Lost = oldest.Used > 0 ? oldest.Last : _status.Lost;
        _status.Head = _head;
        if (_status.Tail < _head)
        {
            // What is dropped is of the entry that is being applied: readers find nothing until it is published.
            _status.Tail = _head;
            _status.TailBytes = 0;
        }

        EndUpdate();

        // Readers see that it is gone before its bytes change.
        Interlocked.MemoryBarrier();
    }

    private void BeginUpdate()
    {
        _version++;
        Interlocked.MemoryBarrier();
    }

    private void EndUpdate() => Volatile.Write(ref _version, _version + 1);
}
