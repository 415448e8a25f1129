using Kahuna.Server.Primitives;

namespace Kahuna.Server.Storage;

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
