using System.Numerics;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// Rows that stand for nothing, or are about to, of which the lowest always comes first: which row a name gets then
/// follows from which rows are free, and so is the same on every node, whether it was there from the start or loaded
/// what others stored. One bit for each row, and above 64 of them one that says whether any is set. Owned by one
/// <see cref="KeyTable"/> or <see cref="KeyStore"/>; not thread-safe.
/// </summary>
internal sealed class FreeRows
{
    private const int WordShift = 6;

    /// <summary>Six bits each: more than there can be rows.</summary>
    private const int Levels = 6;

    private readonly ulong[][] _levels = new ulong[Levels][];

    public FreeRows()
    {
        for (int level = 0; level < Levels; level++)
        {
            _levels[level] = new ulong[1];
        }
    }

    public int Count { get; private set; }

    /// <summary>The lowest row; 0 when there is none.</summary>
    public Row First
    {
        get
        {
            if (Count == 0)
            {
                return Row.None;
            }

            int index = 0;
            for (int level = Levels - 1; level >= 0; level--)
            {
                index = (index << WordShift) + BitOperations.TrailingZeroCount(_levels[level][index]);
            }

            return new Row(index);
        }
    }

    /// <summary>Adds a row that is not there.</summary>
    public void Add(Row row)
    {
        Count++;
        int index = row.Value;
        for (int level = 0; level < Levels; level++)
        {
            int word = index >> WordShift;
            if (word >= _levels[level].Length)
            {
                Array.Resize(ref _levels[level], Math.Max(word + 1, 2 * _levels[level].Length));
            }

            ulong before = _levels[level][word];
            InvariantException.Require(level > 0 || (before & (1UL << (index & 63))) == 0, "a row is added once");
            _levels[level][word] = before | (1UL << (index & 63));
            if (before != 0)
            {
                return;
            }

            index = word;
        }
    }

    /// <summary>Takes a row away that is there.</summary>
    public void Remove(Row row)
    {
        InvariantException.Require(
            Count > 0
                && row.Value >> WordShift < _levels[0].Length
                && (_levels[0][row.Value >> WordShift] & (1UL << (row.Value & 63))) != 0,
            "only a row that is there is taken away");
        Count--;
        int index = row.Value;
        for (int level = 0; level < Levels; level++)
        {
            ref ulong word = ref _levels[level][index >> WordShift];
            word &= ~(1UL << (index & 63));
            if (word != 0)
            {
                return;
            }

            index >>= WordShift;
        }
    }
}
