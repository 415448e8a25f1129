using Kahuna.Wire.Commands;

namespace Kahuna.Server.Access;

/// <summary>
/// Names as disjoint intervals in the order of their bytes. Intervals that overlap or touch are one, so that what
/// several grants cover together lies in a single interval. Immutable; any thread.
/// </summary>
internal sealed class NameIntervals
{
    private readonly KeyRange[] _intervals;

    private NameIntervals(KeyRange[] intervals) => _intervals = intervals;

    /// <summary>No names.</summary>
    public static NameIntervals None { get; } = new([]);

    /// <summary>There are no names.</summary>
    public bool IsEmpty => _intervals.Length == 0;

    /// <summary>All names, up to the last of all.</summary>
    public bool IsEverything => _intervals is [{ Start.Length: 0, End: null }];

    /// <summary>The union of ranges.</summary>
    public static NameIntervals Of(IEnumerable<KeyRange> ranges)
    {
        List<KeyRange> sorted = [.. ranges.Where(static range => !range.IsEmpty)];
        sorted.Sort(static (left, right) => left.Start.AsSpan().SequenceCompareTo(right.Start));
        List<KeyRange> merged = [];
        foreach (KeyRange range in sorted)
        {
            if (merged.Count == 0 || IsBehind(range.Start, merged[^1].End))
            {
                merged.Add(range);
            }
            else if (range.End is null || IsBehind(range.End, merged[^1].End))
            {
                merged[^1] = merged[^1] with { End = range.End };
            }
        }

        return merged.Count == 0 ? None : new NameIntervals([.. merged]);
    }

    /// <summary>All of the names that are asked for are among them.</summary>
    public bool Contains(scoped in AskedNames asked)
    {
        int at = IndexFor(asked.Start);
        return at >= 0 && asked.EndIn(_intervals[at].End);
    }

    /// <summary>Both are the same names.</summary>
    public bool IsSame(NameIntervals other) =>
        _intervals.Length == other._intervals.Length
            && _intervals.Zip(other._intervals).All(static pair => pair.First.IsSame(pair.Second));

    /// <summary>The last interval that begins at the name or before it; -1 for none.</summary>
    private int IndexFor(ReadOnlySpan<byte> name)
    {
        int low = 0;
        int high = _intervals.Length;
        while (low < high)
        {
            int middle = (low + high) >> 1;
            if (_intervals[middle].Start.AsSpan().SequenceCompareTo(name) <= 0)
            {
                low = middle + 1;
            }
            else
            {
                high = middle;
            }
        }

        return low - 1;
    }

    /// <summary>The bound lies behind the end; nothing lies behind no end.</summary>
    private static bool IsBehind(byte[] bound, byte[]? end) =>
        end is not null && bound.AsSpan().SequenceCompareTo(end) > 0;
}
