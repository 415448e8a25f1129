using System.Numerics;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// A set of row numbers, one bit each. It grows to what is added and keeps its room when it is cleared. Owned by one
/// store or view; not thread-safe.
/// </summary>
internal sealed class RowSet
{
    private const int WordShift = 6;

    private ulong[] _words = [];

    /// <summary>Rows in the set.</summary>
    public int Count { get; private set; }

    public bool Contains(int row) => row >> WordShift < _words.Length && (_words[row >> WordShift] & Bit(row)) != 0;

    public void Add(int row)
    {
        if (row >> WordShift >= _words.Length)
        {
            Array.Resize(ref _words, Math.Max((row >> WordShift) + 1, 2 * _words.Length));
        }

        ref ulong word = ref _words[row >> WordShift];
        Count += (word & Bit(row)) == 0 ? 1 : 0;
        word |= Bit(row);
    }

    /// <summary>Adds all rows from 1 to <paramref name="last"/>.</summary>
    public void AddAll(int last)
    {
        Clear();
        if (_words.Length <= last >> WordShift)
        {
            _words = new ulong[(last >> WordShift) + 1];
        }

        int whole = (last + 1) >> WordShift;
        _words.AsSpan(0, whole).Fill(ulong.MaxValue);
        if (((last + 1) & 63) != 0)
        {
            _words[whole] = Bit(last + 1) - 1;
        }

        _words[0] &= ~1UL;
        Count = last;
    }

    /// <summary>True when the row was in the set.</summary>
    public bool Remove(int row)
    {
        if (!Contains(row))
        {
            return false;
        }

        _words[row >> WordShift] &= ~Bit(row);
        Count--;
        return true;
    }

    /// <summary>The first row from <paramref name="from"/> on; 0 when there is none.</summary>
    public int Next(int from)
    {
        int index = from >> WordShift;
        if (Count == 0 || index >= _words.Length)
        {
            return 0;
        }

        ulong word = _words[index] & (ulong.MaxValue << (from & 63));
        while (word == 0)
        {
            if (++index == _words.Length)
            {
                return 0;
            }

            word = _words[index];
        }

        return (index << WordShift) + BitOperations.TrailingZeroCount(word);
    }

    /// <summary>Takes the rows of another set over and leaves that one empty, with the room of this one.</summary>
    public void TakeFrom(RowSet other)
    {
        Clear();
        (_words, other._words) = (other._words, _words);
        (Count, other.Count) = (other.Count, 0);
    }

    public void Clear()
    {
        if (Count > 0)
        {
            Array.Clear(_words);
            Count = 0;
        }
    }

    private static ulong Bit(int row) => 1UL << (row & 63);
}
