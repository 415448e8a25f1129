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

/// <summary>Position of the record whose first entry is <paramref name="First"/>.</summary>
internal readonly record struct RecordPosition(LogIndex First, ulong Segment, long Offset);

/// <summary>
/// Index of one group's part of the log: its hard state, the extent of its entries, their terms, and positions from
/// which to read. From one position on, the group's records follow each other in one segment, without gaps or
/// overwriting, up to the next position's first index. Guarded by <see cref="LogPositions"/>.
/// </summary>
internal sealed class GroupPositions
{
    /// <summary>
    /// Most bytes of the group's own records between two positions, and so the most that a read skips.
    /// </summary>
    private const long SpacingBytes = 64 * 1024;

    /// <summary>
    /// Most bytes of all groups' records between two positions, so that a quiet group among busy ones is found with one
    /// read.
    /// </summary>
    private const long DistanceBytes = 1 << 20;

    private readonly List<RecordPosition> _positions = [];
    private readonly GroupTerms _terms = new();
    private long _bytesSince;
    private bool _chainEnded;

    public HardState HardState { get; set; }

    /// <summary>The index before the first entry that the log holds.</summary>
    public LogIndex Start { get; private set; }

    /// <summary>Term of the entry at <see cref="Start"/>; the default if unknown.</summary>
    public Term StartTerm => _terms.StartTerm;

    /// <summary>The last entry; <see cref="Start"/> if the log holds none.</summary>
    public LogIndex LastIndex { get; private set; }

    /// <summary>Term of the last entry; the default if unknown.</summary>
    public Term LastTerm => _terms.LastTerm;

    /// <summary>Terms of the entries that the log holds.</summary>
    public IReadOnlyList<TermRun> Terms => _terms.Runs;

    /// <summary>
    /// Counts overwrites. A reader that sees it change has read entries that are no longer in the log.
    /// </summary>
    public ulong Overwrites { get; private set; }

    /// <summary>Whether entries that begin at this index continue the log without a gap.</summary>
    public bool Accepts(ulong first) => first > 0 && first <= LastIndex.Value + 1;

    /// <summary>Adds a record of entries. Drops the group's entries from the record's first index on.</summary>
    public void Add(in RecordHeader header, ReadOnlySpan<byte> entries, ulong segment, long offset)
    {
        LogIndex first = new(header.Number);
        InvariantException.Require(Accepts(header.Number), "added entries continue the group's log without a gap");
        if (first <= LastIndex)
        {
            Truncate(first);
        }

        if (header.Count == 0)
        {
            return;
        }

        if (_chainEnded || _positions.Count == 0 || _positions[^1].Segment != segment
            || _bytesSince >= SpacingBytes || offset - _positions[^1].Offset >= DistanceBytes)
        {
            InvariantException.Require(
                _positions.Count == 0 || _positions[^1].First < first, "a group's positions ascend");
            _positions.Add(new RecordPosition(first, segment, offset));
            _bytesSince = 0;
            _chainEnded = false;
        }

        _bytesSince += header.RecordBytes;
        _terms.Add(first, entries);
        LastIndex = first + (header.Count - 1);
    }

    /// <summary>Restarts the group's log after this entry, without entries.</summary>
    public void Restart(LogIndex index, Term term)
    {
        _positions.Clear();
        _terms.Restart(term);
        Start = index;
        LastIndex = index;
        Overwrites++;
    }

    /// <summary>
    /// The last entry in this segment or an earlier one, except overwritten ones; 0 if there is none.
    /// </summary>
    public LogIndex LastUpTo(ulong segment)
    {
        int behind = CountUpTo(segment);
        return behind == 0 ? default : LastBefore(behind);
    }

    /// <summary>Drops the entries in this segment and earlier ones.</summary>
    public void DropUpTo(ulong segment)
    {
        int behind = CountUpTo(segment);
        if (behind > 0)
        {
            Start = LastBefore(behind);
            InvariantException.Require(Start <= LastIndex, "a group's log does not begin behind its end");
            _terms.Cut(Start, LastIndex);
            _positions.RemoveRange(0, behind);
        }
    }

    /// <summary>
    /// The last position at or below an index that the log holds. <paramref name="until"/>: the first index of the next
    /// position, or the index after the last entry.
    /// </summary>
    public RecordPosition Find(LogIndex index, out LogIndex until)
    {
        int low = 0;
        int high = _positions.Count - 1;
        while (low < high)
        {
            int middle = (low + high + 1) / 2;
            if (_positions[middle].First <= index)
            {
                low = middle;
            }
            else
            {
                high = middle - 1;
            }
        }

        until = LastBefore(low + 1).Next();
        InvariantException.Require(
            _positions[low].First <= index && index < until, "a position is found for every entry of the log");
        return _positions[low];
    }

    private void Truncate(LogIndex first)
    {
        int keep = _positions.Count;
        while (keep > 0 && _positions[keep - 1].First >= first)
        {
            keep--;
        }

        _positions.RemoveRange(keep, _positions.Count - keep);
        if (first <= Start)
        {
            // Only recovery without the older segments gets here: these entries were already overwritten when their
            // segment was dropped. The entry before them is in a dropped segment too, so its term is unknown.
            Start = first.Previous();
            _terms.Restart(default);
        }
        else
        {
            _terms.Truncate(first);
        }

        LastIndex = first.Previous();
        Overwrites++;
        _chainEnded = true;
    }

    /// <summary>Number of positions in this segment and earlier ones.</summary>
    private int CountUpTo(ulong segment)
    {
        int low = 0;
        int high = _positions.Count;
        while (low < high)
        {
            int middle = (low + high) / 2;
            if (_positions[middle].Segment <= segment)
            {
                low = middle + 1;
            }
            else
            {
                high = middle;
            }
        }

        return low;
    }

    /// <summary>The last entry before the position with this number.</summary>
    private LogIndex LastBefore(int position) =>
        position < _positions.Count ? _positions[position].First.Previous() : LastIndex;
}

/// <summary>
/// The terms of one group's entries in the log, as runs, and the term of the entry before them. Guarded by
/// <see cref="LogPositions"/>.
/// </summary>
internal sealed class GroupTerms
{
    private readonly List<TermRun> _runs = [];

    /// <summary>The runs. The first one begins at the first entry that the log holds.</summary>
    public IReadOnlyList<TermRun> Runs => _runs;

    /// <summary>Term of the entry before the first one that the log holds; the default if unknown.</summary>
    public Term StartTerm { get; private set; }

    /// <summary>Term of the last entry; the default if unknown.</summary>
    public Term LastTerm => _runs.Count == 0 ? StartTerm : _runs[^1].Term;

    /// <summary>Drops all entries.</summary>
    public void Restart(Term startTerm)
    {
        _runs.Clear();
        StartTerm = startTerm;
    }

    /// <summary>Drops the entries from <paramref name="first"/> on.</summary>
    public void Truncate(LogIndex first)
    {
        int keep = _runs.Count;
        while (keep > 0 && _runs[keep - 1].First >= first)
        {
            keep--;
        }

        _runs.RemoveRange(keep, _runs.Count - keep);
    }

    /// <summary>Adds entries after the last one.</summary>
    public void Add(LogIndex first, ReadOnlySpan<byte> entries)
    {
        for (LogIndex index = first; EntryCodec.TryRead(ref entries, out Term term, out _, out _); index = index.Next())
        {
            if (_runs.Count == 0 || _runs[^1].Term != term)
            {
                InvariantException.Require(
                    _runs.Count == 0 || _runs[^1].First < index, "a group's term runs ascend");
                _runs.Add(new TermRun(index, term));
            }
        }
    }

    /// <summary>
    /// Drops the entries up to <paramref name="start"/>, an entry of the log. <paramref name="last"/> is the group's
    /// last entry.
    /// </summary>
    public void Cut(LogIndex start, LogIndex last)
    {
        int passed = 0;
        while (passed < _runs.Count && _runs[passed].First <= start)
        {
            passed++;
        }

        if (passed == 0)
        {
            return;
        }

        StartTerm = _runs[passed - 1].Term;
        LogIndex next = start.Next();
        bool goesOn = passed < _runs.Count ? _runs[passed].First > next : last > start;
        if (goesOn)
        {
            _runs[--passed] = new TermRun(next, StartTerm);
        }

        _runs.RemoveRange(0, passed);
        InvariantException.Require(
            _runs.Count == 0 || _runs[0].First > start, "the term runs begin behind the entry before them");
    }
}
