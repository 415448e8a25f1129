using Kahuna.Server.Primitives;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// The ranges of keys that prepared transactions hold to read them: nobody else may write a key of one. The bounds of
/// all ranges cut the keys into pieces, and each piece knows how many ranges cover it, so a key is looked up in the
/// logarithm of their number. Owned by one <see cref="PreparedKeys"/>; not thread-safe.
/// </summary>
internal sealed class HeldRanges
{
    /// <summary>Bytes of a bound besides its name.</summary>
    private const int OverheadBytes = 48;

    /// <summary>The bounds in the order of their bytes, each once.</summary>
    private readonly List<byte[]> _bounds = [];

    /// <summary>
    /// How many ranges begin or end at each bound, and how many cover the keys from it to the next one.
    /// </summary>
    private readonly List<Piece> _pieces = [];

    /// <summary>Held ranges, those that are held several times so often.</summary>
    public int Count { get; private set; }

    /// <summary>Bytes of the bounds.</summary>
    public long Bytes { get; private set; }

    /// <summary>The key lies in a held range.</summary>
    public bool Contains(ReadOnlySpan<byte> key)
    {
        int piece = Count == 0 ? -1 : LastUpTo(key);
        return piece >= 0 && _pieces[piece].Covering > 0;
    }

    /// <summary>Some key may lie in both a held range and this one.</summary>
    /// <param name="start">The first key of the range; empty: of all.</param>
    /// <param name="end">The first key behind it; empty: none is.</param>
    public bool Overlap(ReadOnlySpan<byte> start, ReadOnlySpan<byte> end)
    {
        if (Count == 0)
        {
            return false;
        }

        int last = end.IsEmpty ? _bounds.Count - 1 : LastUpTo(end);
        if (last >= 0 && !end.IsEmpty && end.SequenceEqual(_bounds[last]))
        {
            last--;
        }

        for (int i = Math.Max(0, LastUpTo(start)); i <= last; i++)
        {
            if (_pieces[i].Covering > 0)
            {
                return true;
            }
        }

        return false;
    }

    /// <summary>A transaction holds the range.</summary>
    /// <param name="start">The first key of the range; empty: of all.</param>
    /// <param name="end">The first key behind it; empty: none is.</param>
    public void Hold(ReadOnlySpan<byte> start, ReadOnlySpan<byte> end) => Change(start, end, 1);

    /// <summary>A transaction lets the range go once.</summary>
    public void Release(ReadOnlySpan<byte> start, ReadOnlySpan<byte> end) => Change(start, end, -1);

    private void Change(ReadOnlySpan<byte> start, ReadOnlySpan<byte> end, int by)
    {
        if (by > 0)
        {
            AddBound(start);
            AddBound(end.IsEmpty ? PreparedKeys.End : end);
        }

        int first = LastUpTo(start);
        int last = LastUpTo(end.IsEmpty ? PreparedKeys.End : end);
        InvariantException.Require(
            first >= 0 && last > first && _bounds[first].AsSpan().SequenceEqual(start), "a held range has its bounds");
        for (int i = first; i < last; i++)
        {
            _pieces[i] = _pieces[i] with { Covering = _pieces[i].Covering + by };
            InvariantException.Require(_pieces[i].Covering >= 0, "a range is let go as often as it was held");
        }

        Count += by;
        Use(last, by);
        Use(first, by);
    }

    private void AddBound(ReadOnlySpan<byte> bound)
    {
        int before = LastUpTo(bound);
        if (before >= 0 && _bounds[before].AsSpan().SequenceEqual(bound))
        {
            return;
        }

        _bounds.Insert(before + 1, bound.ToArray());
        _pieces.Insert(before + 1, new Piece(0, before < 0 ? 0 : _pieces[before].Covering));
        Bytes += bound.Length + OverheadBytes;
    }

    private void Use(int bound, int by)
    {
        Piece piece = _pieces[bound] with { Uses = _pieces[bound].Uses + by };
        if (piece.Uses > 0)
        {
            _pieces[bound] = piece;
            return;
        }

        Bytes -= _bounds[bound].Length + OverheadBytes;
        _bounds.RemoveAt(bound);
        _pieces.RemoveAt(bound);
    }

    /// <summary>The last bound that does not come after the key; -1: all do.</summary>
    private int LastUpTo(ReadOnlySpan<byte> key)
    {
        int low = 0;
        int high = _bounds.Count - 1;
        while (low <= high)
        {
            int middle = (low + high) >>> 1;
            if (_bounds[middle].AsSpan().SequenceCompareTo(key) <= 0)
            {
                low = middle + 1;
            }
            else
            {
                high = middle - 1;
            }
        }

        return high;
    }

    /// <summary>The keys from a bound to the next one.</summary>
    /// <param name="Uses">Ranges that begin or end at the bound.</param>
    /// <param name="Covering">Ranges that these keys lie in.</param>
    private readonly record struct Piece(int Uses, int Covering);
}
