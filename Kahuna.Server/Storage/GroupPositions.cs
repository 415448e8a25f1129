using Kahuna.Server.Primitives;

namespace Kahuna.Server.Storage;

/// <summary>
/// One group in the log: its hard state, its last index, and where to begin reading. From one position on, the group's records
/// follow each other without gap or overwriting up to the next position's first index. Guarded by <see cref="LogPositions"/>.
/// </summary>
internal sealed class GroupPositions
{
    /// <summary>A position at least so often: reading to a wanted entry passes over no more than this of the group's own records.</summary>
    private const long SpacingBytes = 64 * 1024;

    private readonly List<RecordPosition> _positions = [];
    private long _bytesSince;

    public HardState HardState { get; set; }

    /// <summary>First index that the log holds; 0 before the first entry.</summary>
    public LogIndex FirstIndex => _positions.Count == 0 ? default : _positions[0].First;

    public LogIndex LastIndex { get; private set; }

    /// <summary>How often entries were overwritten; a reader that sees it change has read what is no longer the log.</summary>
    public ulong Overwrites { get; private set; }

    /// <summary>Whether entries that begin at this index follow on what is there.</summary>
    public bool Accepts(ulong first) => first > 0 && (_positions.Count == 0 || (first <= LastIndex.Value + 1 && first >= FirstIndex.Value));

    public void Add(ulong first, uint count, long recordBytes, ulong segment, long offset)
    {
        bool due = _positions.Count == 0;
        if (!due && first <= LastIndex.Value)
        {
            while (_positions.Count > 0 && _positions[^1].First.Value >= first)
            {
                _positions.RemoveAt(_positions.Count - 1);
            }

            Overwrites++;
            due = true;
        }

        if (due || _bytesSince >= SpacingBytes || _positions[^1].Segment != segment)
        {
            _positions.Add(new RecordPosition(new LogIndex(first), segment, offset));
            _bytesSince = 0;
        }

        _bytesSince += recordBytes;
        LastIndex = new LogIndex(first + count - 1);
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

        until = low + 1 < _positions.Count ? _positions[low + 1].First : LastIndex.Next();
        return _positions[low];
    }
}
