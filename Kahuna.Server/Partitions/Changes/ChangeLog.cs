using System.Buffers.Binary;
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

/// <summary>
/// One change as a <see cref="ChangeLog"/> keeps it. Only in memory of one process; its spans point into the buffer it
/// was read from.
/// </summary>
internal readonly ref struct ChangeRecord
{
    private const int HeaderBytes = 40;
    private const byte NullValue = 1;
    private const byte PreviousKept = 2;

    private readonly ReadOnlySpan<byte> _bytes;

    private ChangeRecord(ReadOnlySpan<byte> bytes) => _bytes = bytes;

    /// <summary>What happened.</summary>
    public ChangeKind Kind => (ChangeKind)_bytes[4];

    /// <summary>The written value is null, not empty.</summary>
    public bool IsNull => (_bytes[5] & NullValue) != 0;

    /// <inheritdoc cref="Change.IsPreviousKept"/>
    public bool IsPreviousKept => (_bytes[5] & PreviousKept) != 0;

    /// <summary>The number of the change in its entry.</summary>
    public uint N => BinaryPrimitives.ReadUInt32LittleEndian(_bytes[12..]);

    /// <inheritdoc cref="Change.Transaction"/>
    public uint Transaction => BinaryPrimitives.ReadUInt32LittleEndian(_bytes[16..]);

    /// <summary>The entry.</summary>
    public ulong Index => BinaryPrimitives.ReadUInt64LittleEndian(_bytes[24..]);

    /// <inheritdoc cref="Change.Revision"/>
    public long Revision => BinaryPrimitives.ReadInt64LittleEndian(_bytes[32..]);

    /// <summary>The key.</summary>
    public ReadOnlySpan<byte> Key => _bytes.Slice(HeaderBytes, KeyLength(_bytes));

    /// <summary>The written value; empty for other kinds.</summary>
    public ReadOnlySpan<byte> Value => _bytes.Slice(HeaderBytes + KeyLength(_bytes), ValueLength(_bytes));

    /// <summary>Takes the record at the front of what a read has copied. False at the end.</summary>
    public static bool TryTake(ref ReadOnlySpan<byte> source, out ChangeRecord record)
    {
        record = default;
        if (!TryLength(source, out int length))
        {
            return false;
        }

        record = new ChangeRecord(source[..length]);
        source = source[length..];
        return true;
    }

    /// <summary>Length of a record.</summary>
    public static int LengthOf(int keyLength, int valueLength) => checked(HeaderBytes + keyLength + valueLength);

    /// <summary>Writes a record of <see cref="LengthOf"/> bytes.</summary>
    public static void Write(Span<byte> target, int n, ulong index, scoped in Change change)
    {
        BinaryPrimitives.WriteUInt32LittleEndian(target, (uint)target.Length);
        target[4] = (byte)change.Kind;
        target[5] = (byte)((change.IsNull ? NullValue : 0) | (change.IsPreviousKept ? PreviousKept : 0));
        BinaryPrimitives.WriteUInt16LittleEndian(target[6..], checked((ushort)change.Key.Length));
        BinaryPrimitives.WriteUInt32LittleEndian(target[8..], (uint)change.Value.Length);
        BinaryPrimitives.WriteUInt32LittleEndian(target[12..], (uint)n);
        BinaryPrimitives.WriteUInt32LittleEndian(target[16..], (uint)change.Transaction);
        BinaryPrimitives.WriteUInt32LittleEndian(target[20..], 0);
        BinaryPrimitives.WriteUInt64LittleEndian(target[24..], index);
        BinaryPrimitives.WriteInt64LittleEndian(target[32..], change.Revision.Value);
        change.Key.CopyTo(target[HeaderBytes..]);
        change.Value.CopyTo(target[(HeaderBytes + change.Key.Length)..]);
    }

    /// <summary>
    /// The length of the record at the front. False when there is none, or only bytes that are being overwritten.
    /// </summary>
    public static bool TryLength(ReadOnlySpan<byte> source, out int length)
    {
        length = 0;
        if (source.Length < HeaderBytes)
        {
            return false;
        }

        uint written = BinaryPrimitives.ReadUInt32LittleEndian(source);
        if (written > (uint)source.Length
            || written != HeaderBytes + (long)KeyLength(source) + (uint)ValueLength(source))
        {
            return false;
        }

        length = (int)written;
        return true;
    }

    /// <summary>Where the record at the front stands.</summary>
    public static ChangePoint PointOf(ReadOnlySpan<byte> source, uint group, ulong epoch) =>
        new(
            group,
            epoch,
            BinaryPrimitives.ReadUInt64LittleEndian(source[24..]),
            BinaryPrimitives.ReadUInt32LittleEndian(source[12..]));

    private static int KeyLength(ReadOnlySpan<byte> source) => BinaryPrimitives.ReadUInt16LittleEndian(source[6..]);

    private static int ValueLength(ReadOnlySpan<byte> source) => BinaryPrimitives.ReadInt32LittleEndian(source[8..]);
}
