using System.Runtime.InteropServices;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Storage;

/// <summary>
/// Index of the log on stable storage: the position of each group's entries, and which of them the groups still need.
/// Filled by recovery, then by the log thread after each sync; read from any thread. One lock guards everything, held
/// for one batch, one lookup or one cut.
/// </summary>
internal sealed class LogPositions
{
    private readonly Lock _lock = new();
    private readonly Dictionary<uint, GroupPositions> _groups = [];
    private readonly Dictionary<uint, LogIndex> _released = [];
    private readonly HashSet<uint> _abandoned = [];
    private readonly List<Place> _segments = [];
    private ulong _firstSegment;

    /// <summary>Bytes of all segments, the last one up to its end.</summary>
    public long Bytes
    {
        get
        {
            lock (_lock)
            {
                return EndAddress - _segments[0].Address;
            }
        }
    }

    /// <summary>Number of segments.</summary>
    public int Segments
    {
        get
        {
            lock (_lock)
            {
                return _segments.Count;
            }
        }
    }

    /// <summary>All groups. For the log thread only, which alone changes them.</summary>
    public IReadOnlyCollection<KeyValuePair<uint, GroupPositions>> Groups => _groups;

    private long EndAddress => _segments[^1].Address + _segments[^1].End;

    /// <summary>One group. For the log thread, and before it starts.</summary>
    public GroupPositions? Find(GroupId group) => _groups.GetValueOrDefault(group.Value);

    /// <summary>Adds a segment after the last one. It ends after its header.</summary>
    public void AddSegment(ulong segment, long capacity)
    {
        lock (_lock)
        {
            long address = 0;
            if (_segments.Count == 0)
            {
                _firstSegment = segment;
            }
            else
            {
                Place last = _segments[^1];
                address = last.Address + Math.Max(last.Capacity, last.End);
            }

            InvariantException.Require(segment == _firstSegment + (ulong)_segments.Count, "segments follow each other");
            _segments.Add(new Place(address, capacity, SegmentHeader.Bytes));
        }
    }

    /// <summary>Removes the last segment, which must have no batch.</summary>
    public void DropLastSegment(ulong segment)
    {
        lock (_lock)
        {
            int last = _segments.Count - 1;
            InvariantException.Require(
                last > 0 && segment == _firstSegment + (ulong)last && _segments[last].End == SegmentHeader.Bytes,
                "only an unused last segment is dropped");
            _segments.RemoveAt(last);
        }
    }

    /// <summary>
    /// Adds one whole batch that is on stable storage. Its records are as written; checksums are not verified.
    /// </summary>
    public void AddRecords(ulong segment, long offset, ReadOnlySpan<byte> records)
    {
        lock (_lock)
        {
            int at = (int)(segment - _firstSegment);
            InvariantException.Require(
                segment >= _firstSegment && at < _segments.Count, "records are added to a segment of the log");
            InvariantException.Require(
                offset >= _segments[at].End, "records are added behind those of their segment");
            while (!records.IsEmpty)
            {
                InvariantException.Require(
                    RecordHeader.TryRead(records, out RecordHeader header) && header.RecordBytes <= records.Length,
                    "added records are whole");
                Add(segment, offset, header, records.Slice(RecordHeader.Bytes, header.PayloadLength));
                offset += header.RecordBytes;
                records = records[(int)header.RecordBytes..];
            }

            _segments[at] = _segments[at] with { End = offset };
        }
    }

    /// <summary>Whether entries at this index continue the group's log; recovery checks before it adds.</summary>
    public bool Accepts(GroupId group, ulong first) =>
        !_groups.TryGetValue(group.Value, out GroupPositions? positions) ? first == 1 : positions.Accepts(first);

    /// <summary>
    /// Finds where to begin reading an entry. False when the log does not hold it. <paramref name="until"/>: the index
    /// up to which the position is good. <paramref name="overwrites"/>: how often the group was overwritten so far.
    /// </summary>
    public bool TryFind(
        GroupId group, LogIndex index, out RecordPosition position, out LogIndex until, out ulong overwrites)
    {
        lock (_lock)
        {
            if (!_groups.TryGetValue(group.Value, out GroupPositions? positions)
                || index > positions.LastIndex
                || index <= positions.Start)
            {
                position = default;
                until = default;
                overwrites = 0;
                return false;
            }

            position = positions.Find(index, out until);
            overwrites = positions.Overwrites;
            return true;
        }
    }

    /// <summary>How often entries of the group were overwritten.</summary>
    public ulong Overwrites(GroupId group)
    {
        lock (_lock)
        {
            return _groups.TryGetValue(group.Value, out GroupPositions? positions) ? positions.Overwrites : 0;
        }
    }

    /// <summary>Where a segment's last batch ends; 0 if the log does not hold the segment.</summary>
    public long EndOf(ulong segment)
    {
        lock (_lock)
        {
            ulong at = segment - _firstSegment;
            return at < (ulong)_segments.Count ? _segments[(int)at].End : 0;
        }
    }

    /// <summary>Whether the log still holds this segment.</summary>
    public bool Holds(ulong segment) => EndOf(segment) > 0;

    /// <summary>The index before the first entry that the log holds for a group.</summary>
    public LogIndex StartOf(GroupId group)
    {
        lock (_lock)
        {
            return _groups.TryGetValue(group.Value, out GroupPositions? positions) ? positions.Start : default;
        }
    }

    /// <summary>
    /// Bytes of the log from the entry after <paramref name="index"/> on: 0 if the group has none, all bytes if the log
    /// no longer holds it. Counted from the nearest position before the entry, so never too small.
    /// </summary>
    public long BytesSince(GroupId group, LogIndex index)
    {
        lock (_lock)
        {
            if (!_groups.TryGetValue(group.Value, out GroupPositions? positions) || index >= positions.LastIndex)
            {
                return 0;
            }

            long from = _segments[0].Address;
            if (index >= positions.Start)
            {
                RecordPosition position = positions.Find(index.Next(), out _);
                from = _segments[(int)(position.Segment - _firstSegment)].Address + position.Offset;
            }

            InvariantException.Require(from <= EndAddress, "a position lies before the end of the log");
            return EndAddress - from;
        }
    }

    /// <summary>
    /// The group no longer needs entries up to this one. True when the first segment may now be droppable.
    /// </summary>
    public bool Release(GroupId group, LogIndex index, SegmentedLogOptions options)
    {
        lock (_lock)
        {
            ref LogIndex released = ref CollectionsMarshal.GetValueRefOrAddDefault(_released, group.Value, out _);
            if (index <= released)
            {
                return false;
            }

            released = index;
            return IsFirstSpare(options);
        }
    }

    /// <summary>The group will never release entries. They are kept while there is space.</summary>
    public void Abandon(GroupId group)
    {
        lock (_lock)
        {
            _abandoned.Add(group.Value);
        }
    }

    /// <summary>
    /// Log thread: drops the first segment if no group needs it and the log is large enough without it.
    /// </summary>
    public bool TryDropFirstSegment(SegmentedLogOptions options, out ulong segment)
    {
        lock (_lock)
        {
            segment = _firstSegment;
            if (!IsFirstSpare(options))
            {
                return false;
            }

            bool isLarge = EndAddress - _segments[0].Address >= options.LogLimitBytes / 2;
            foreach ((uint group, GroupPositions positions) in _groups)
            {
                if (positions.LastUpTo(segment) > _released.GetValueOrDefault(group)
                    && !(isLarge && _abandoned.Contains(group)))
                {
                    return false;
                }
            }

            foreach (GroupPositions positions in _groups.Values)
            {
                positions.DropUpTo(segment);
            }

            InvariantException.Require(_segments.Count > 1, "the last segment is never dropped");
            _segments.RemoveAt(0);
            _firstSegment++;
            return true;
        }
    }

    /// <summary>
    /// Whether the log is large enough without its first segment, or must shrink. The last segment is never spare,
    /// because it is being written.
    /// </summary>
    private bool IsFirstSpare(SegmentedLogOptions options) =>
        _segments.Count > 1
        && (EndAddress - _segments[1].Address >= options.KeptBytes
            || EndAddress - _segments[0].Address >= options.LogLimitBytes);

    private void Add(ulong segment, long offset, in RecordHeader header, ReadOnlySpan<byte> payload)
    {
        switch (header.Kind)
        {
            case RecordKind.Entries:
                Group(header.Group).Add(header, payload, segment, offset);
                break;
            case RecordKind.HardState:
                Group(header.Group).HardState = LogRecord.ReadHardState(payload, out _);
                break;
            case RecordKind.Checkpoint:
                for (int i = 0; i < header.Count; i++)
                {
                    Add(LogRecord.ReadCheckpoint(payload, i));
                }

                break;
            case RecordKind.Restart:
                Group(header.Group).Restart(new LogIndex(header.Number), LogRecord.ReadRestart(payload));
                break;
        }
    }

    /// <summary>
    /// Adds a group of a segment's checkpoint. It is news only to a recovery that begins with this segment.
    /// </summary>
    private void Add(in GroupCheckpoint checkpoint)
    {
        GroupPositions positions = Group(checkpoint.Group);
        positions.HardState = checkpoint.HardState;
        if (positions.LastIndex != checkpoint.LastIndex)
        {
            positions.Restart(checkpoint.LastIndex, checkpoint.LastTerm);
        }
    }

    private GroupPositions Group(GroupId group)
    {
        ref GroupPositions? positions = ref CollectionsMarshal.GetValueRefOrAddDefault(_groups, group.Value, out _);
        return positions ??= new GroupPositions();
    }

    /// <summary>
    /// A segment: where it begins, in bytes over all segments; the size of its file; and where in it the last batch
    /// ends.
    /// </summary>
    private readonly record struct Place(long Address, long Capacity, long End);
}
