using Kahuna.Server.Primitives;

namespace Kahuna.Server.Storage;

/// <summary>
/// One group in the log: its hard state, which entries the log holds, their terms, and where to begin reading. From one position on, the
/// group's records follow each other in one segment, without gap or overwriting, up to the next position's first index. Guarded by <see cref="LogPositions"/>.
/// </summary>
internal sealed class GroupPositions
{
    /// <summary>A position at least so often: reading to a wanted entry passes over no more than this of the group's own records.</summary>
    private const long SpacingBytes = 64 * 1024;

    /// <summary>And over no more than this of all groups' records, so that a quiet group among busy ones is found with one read.</summary>
    private const long DistanceBytes = 1 << 20;

    private readonly List<RecordPosition> _positions = [];
    private readonly GroupTerms _terms = new();
    private long _bytesSince;
    private bool _chainEnded;

    public HardState HardState { get; set; }

    /// <summary>The index before the first entry that the log holds.</summary>
    public LogIndex Start { get; private set; }

    /// <summary>The term of the entry at <see cref="Start"/>; the default when it is not known.</summary>
    public Term StartTerm => _terms.StartTerm;

    /// <summary>The last entry; <see cref="Start"/> when the log holds none.</summary>
    public LogIndex LastIndex { get; private set; }

    /// <summary>The last entry's term; the default when it is not known.</summary>
    public Term LastTerm => _terms.LastTerm;

    /// <summary>Terms of the entries that the log holds.</summary>
    public IReadOnlyList<TermRun> Terms => _terms.Runs;

    /// <summary>How often entries were overwritten; a reader that sees it change has read what is no longer the log.</summary>
    public ulong Overwrites { get; private set; }

    /// <summary>Whether entries that begin at this index follow on what is there.</summary>
    public bool Accepts(ulong first) => first > 0 && first <= LastIndex.Value + 1;

    /// <summary>Takes in a record of entries; what the group had at or above its first index is dropped.</summary>
    public void Add(in RecordHeader header, ReadOnlySpan<byte> entries, ulong segment, long offset)
    {
        LogIndex first = new(header.Number);
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
            _positions.Add(new RecordPosition(first, segment, offset));
            _bytesSince = 0;
            _chainEnded = false;
        }

        _bytesSince += header.RecordBytes;
        _terms.Add(first, entries);
        LastIndex = first + (header.Count - 1);
    }

    /// <summary>The log begins anew behind this entry, without entries.</summary>
    public void Restart(LogIndex index, Term term)
    {
        _positions.Clear();
        _terms.Restart(term);
        Start = index;
        LastIndex = index;
        Overwrites++;
    }

    /// <summary>The last entry that lies in this segment or an earlier one, without those that were overwritten; 0 when there is none.</summary>
    public LogIndex LastUpTo(ulong segment)
    {
        int behind = CountUpTo(segment);
        return behind == 0 ? default : LastBefore(behind);
    }

    /// <summary>Forgets what lies in this segment and earlier ones.</summary>
    public void DropUpTo(ulong segment)
    {
        int behind = CountUpTo(segment);
        if (behind > 0)
        {
            Start = LastBefore(behind);
            _terms.Cut(Start, LastIndex);
            _positions.RemoveRange(0, behind);
        }
    }

    /// <summary>The last position at or below an index that the log holds, and the first index of the position after it (or the index after the last).</summary>
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
            // Only recovery without the older segments gets here: these entries were not the group's any more when their segment was dropped.
            // The entry before them lies in a dropped segment too, and which term it has is not known.
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

    /// <summary>The entry before the position with this number.</summary>
    private LogIndex LastBefore(int position) => position < _positions.Count ? _positions[position].First.Previous() : LastIndex;
}
