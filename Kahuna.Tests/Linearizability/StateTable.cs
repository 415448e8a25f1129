namespace Kahuna.Tests.Linearizability;

/// <summary>
/// A hash table of sets with a state, with open addressing. The first words of two sets must be equal to be the same
/// entry; of the others it is enough that those of the entry are contained in those that are looked for. Owned by one
/// search.
/// </summary>
/// <param name="equalWords">Words that must be equal.</param>
/// <param name="words">All words of a set.</param>
/// <param name="alikeMax">Most entries that agree in state and equal words.</param>
internal sealed class StateTable(int equalWords, int words, int alikeMax)
{
    private readonly int _stride = words + 1;
    private ulong[] _slots = new ulong[256 * (words + 1)];
    private int _mask = 255;

    /// <summary>How an addition ended.</summary>
    public enum Addition
    {
        Added,
        WasThere,
        TooManyAlike,
    }

    public int Count { get; private set; }

    /// <param name="set">Of the right number of words.</param>
    /// <param name="state">Not 0, which marks a free slot.</param>
    public Addition Add(ReadOnlySpan<ulong> set, ulong state)
    {
        int alike = 0;
        int slot = SlotOf(set, state);
        for (; _slots[slot] != 0; slot = After(slot))
        {
            if (_slots[slot] == state && _slots.AsSpan(slot + 1, equalWords).SequenceEqual(set[..equalWords]))
            {
                if (Contains(set, slot))
                {
                    return Addition.WasThere;
                }

                alike++;
                if (alike == alikeMax)
                {
                    return Addition.TooManyAlike;
                }
            }
        }

        _slots[slot] = state;
        set.CopyTo(_slots.AsSpan(slot + 1));
        Count++;
        if (Count > _mask / 2)
        {
            Grow();
        }

        return Addition.Added;
    }

    private bool Contains(ReadOnlySpan<ulong> set, int slot)
    {
        for (int i = equalWords; i < words; i++)
        {
            if ((_slots[slot + 1 + i] & ~set[i]) != 0)
            {
                return false;
            }
        }

        return true;
    }

    private int SlotOf(ReadOnlySpan<ulong> set, ulong state)
    {
        ulong hash = Mix(state);
        foreach (ulong word in set[..equalWords])
        {
            hash = Mix(hash ^ word);
        }

        return ((int)(hash >> 32) & _mask) * _stride;
    }

    private int After(int slot) => slot + _stride < _slots.Length ? slot + _stride : 0;

    private void Grow()
    {
        ulong[] before = _slots;
        _mask = (_mask * 2) + 1;
        _slots = new ulong[(_mask + 1) * _stride];
        for (int i = 0; i < before.Length; i += _stride)
        {
            if (before[i] != 0)
            {
                int slot = SlotOf(before.AsSpan(i + 1, words), before[i]);
                while (_slots[slot] != 0)
                {
                    slot = After(slot);
                }

                before.AsSpan(i, _stride).CopyTo(_slots.AsSpan(slot));
            }
        }
    }

    /// <summary>The finalizer of splitmix64.</summary>
    private static ulong Mix(ulong word)
    {
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9;
        word = (word ^ (word >> 27)) * 0x94D049BB133111EB;
        return word ^ (word >> 31);
    }
}
