using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.Disk;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Storage;

/// <summary>
/// Reads a group's entries back from the segments, walking the records from the nearest known position. Keeps one file
/// open. Owned by one thread at a time; another thread may append meanwhile.
/// </summary>
internal sealed class EntryReader(IDisk disk, SegmentFiles files, ulong logId, LogPositions positions) : IDisposable
{
    private const int WindowBytes = 1 << 20;

    private readonly SegmentWindow _window = new(WindowBytes);
    private IDiskFile? _file;
    private ulong _segment;
    private long _end;
    private uint _seal;
    private ulong _reading;

    /// <summary>
    /// Visits the entries [first, last] in order, one record's part at a time. They must be in the log.
    /// </summary>
    public void Visit(GroupId group, LogIndex first, LogIndex last, Action<LogIndex, ReadOnlyMemory<byte>> visit)
    {
        LogIndex next = first;
        while (next <= last)
        {
            InvariantException.Require(
                positions.TryFind(group, next, out RecordPosition position, out LogIndex until, out _),
                "entries that are read lie in the log");
            while (next < until && next <= last)
            {
                RecordHeader header = NextRecord(group, next, ref position, out ReadOnlyMemory<byte> entries);
                LogIndex stop = new(Math.Min(Math.Min(until.Value, last.Value + 1), header.Number + header.Count));
                Range bytes = Clip(entries.Span, header.Number, next, stop, int.MaxValue, out _);
                InvariantException.Require(stop > next, "a read moves forward");
                visit(next, entries[bytes]);
                next = stop;
            }
        }
    }

    /// <summary>
    /// Appends entries from <paramref name="first"/> on to <paramref name="target"/>: at least one, and about
    /// <paramref name="bytesMax"/> bytes. Appends nothing when the log does not hold them, or when they were
    /// overwritten or dropped meanwhile.
    /// </summary>
    public void Read(GroupId group, LogIndex first, int bytesMax, ByteBuffer target)
    {
        try
        {
            ReadHeld(group, first, bytesMax, target);
        }
        catch (Exception error) when ((error is IOException or LogDamagedException) && !positions.Holds(_reading))
        {
            // The segment was dropped meanwhile: its file may be gone, or already hold the beginning of another
            // segment. That is no damage, and a record that still passed its checksum was the right one.
            target.Length = 0;
            Dispose();
        }
    }

    /// <summary>Closes the open file if its segment was dropped, so that its disk space is freed.</summary>
    public void CloseDropped()
    {
        if (_file is not null && !positions.Holds(_segment))
        {
            Dispose();
        }
    }

    public void Dispose()
    {
        _file?.Dispose();
        _file = null;
    }

    private void ReadHeld(GroupId group, LogIndex first, int bytesMax, ByteBuffer target)
    {
        if (!positions.TryFind(group, first, out RecordPosition position, out LogIndex until, out ulong overwrites))
        {
            return;
        }

        LogIndex next = first;
        while (target.Length < bytesMax)
        {
            if (next >= until
                && !(positions.TryFind(group, next, out position, out until, out ulong now) && now == overwrites))
            {
                break;
            }

            RecordHeader header = NextRecord(group, next, ref position, out ReadOnlyMemory<byte> entries);
            LogIndex stop = new(Math.Min(until.Value, header.Number + header.Count));
            int room = bytesMax - target.Length;
            Range bytes = Clip(entries.Span, header.Number, next, stop, room, out LogIndex reached);
            target.Append(entries.Span[bytes]);
            next = reached;
            if (reached < stop)
            {
                break;
            }
        }

        if (positions.Overwrites(group) != overwrites)
        {
            target.Length = 0;
        }
    }

    /// <summary>
    /// Walks from a position to the group's record that holds an entry, and moves the position past that record.
    /// </summary>
    private RecordHeader NextRecord(
        GroupId group, LogIndex wanted, ref RecordPosition position, out ReadOnlyMemory<byte> entries)
    {
        while (true)
        {
            Go(position);
            ReadOnlySpan<byte> front = _window.Get(position.Offset, RecordHeader.Bytes).Span;
            if (front.Length < RecordHeader.Bytes
                || !RecordHeader.TryRead(front, out RecordHeader header)
                || position.Offset + header.RecordBytes > _end)
            {
                throw Damaged(position);
            }

            long here = position.Offset;
            position = position with { Offset = here + header.RecordBytes };
            if (header.Kind == RecordKind.Entries
                && header.Group == group
                && header.Number <= wanted.Value
                && header.Number + header.Count > wanted.Value)
            {
                ReadOnlyMemory<byte> record = _window.Get(here, RecordHeader.Bytes + header.PayloadLength);
                if (record.Length < RecordHeader.Bytes + header.PayloadLength
                    || !LogRecord.IsIntact(record.Span, _seal))
                {
                    throw Damaged(position with { Offset = here });
                }

                entries = record[RecordHeader.Bytes..];
                return header;
            }
        }
    }

    /// <summary>Opens the segment of a position.</summary>
    private void Go(in RecordPosition position)
    {
        _reading = position.Segment;
        if (_file is not null && _segment == position.Segment && position.Offset < _end)
        {
            return;
        }

        long end = positions.EndOf(position.Segment);
        if (position.Offset >= end)
        {
            throw Damaged(position);
        }

        if (_file is null || _segment != position.Segment)
        {
            _file?.Dispose();
            _file = null;
            _file = disk.Open(files.Path(position.Segment), DiskFileMode.Existing);
            _segment = position.Segment;
            _seal = new SegmentHeader(logId, _segment, 0, false).Seal;
        }

        _end = end;
        _window.Open(_file, end);
    }

    /// <summary>
    /// Finds the bytes of entries [from, stop) in a record whose first entry has index <paramref name="number"/>: at
    /// least one entry, and about <paramref name="bytesMax"/> bytes.
    /// </summary>
    private static Range Clip(
        ReadOnlySpan<byte> entries, ulong number, LogIndex from, LogIndex stop, int bytesMax, out LogIndex reached)
    {
        InvariantException.Require(number <= from.Value && from < stop, "at least one entry of a record is read");
        ReadOnlySpan<byte> rest = entries;
        ulong index = number;
        for (; index < from.Value; index++)
        {
            EntryCodec.TryRead(ref rest, out _, out _, out _);
        }

        int start = entries.Length - rest.Length;
        do
        {
            EntryCodec.TryRead(ref rest, out _, out _, out _);
            index++;
        }
        while (index < stop.Value && entries.Length - rest.Length - start < bytesMax);
        reached = new LogIndex(index);
        return start..(entries.Length - rest.Length);
    }

    private LogDamagedException Damaged(RecordPosition position) =>
        new(files.Path(position.Segment), position.Offset, "the record that was here is gone");
}
