namespace Kahuna.Tests.Simulation.Engine;

/// <summary>
/// Actions by the moment at which they are due, those of one moment in the order in which they came. A heap with four
/// children per place, because a run takes one out for every one that it puts in, and there are millions of them. Owned
/// by a <see cref="SimScheduler"/>.
/// </summary>
internal sealed class MomentHeap
{
    private const int Children = 4;

    private Entry[] _entries = new Entry[256];
    private int _count;
    private long _order;

    /// <summary>When the first one is due; null when there is none.</summary>
    public long? FirstNs => _count == 0 ? null : _entries[0].AtNs;

    public void Add(long atNs, Action action)
    {
        if (_count == _entries.Length)
        {
            Array.Resize(ref _entries, _count * 2);
        }

        Entry added = new(atNs, _order++, action);
        int place = _count++;
        while (place > 0 && added.IsBefore(in _entries[(place - 1) / Children]))
        {
            _entries[place] = _entries[(place - 1) / Children];
            place = (place - 1) / Children;
        }

        _entries[place] = added;
    }

    /// <summary>There must be one.</summary>
    public Action TakeFirst()
    {
        Action first = _entries[0].Action;
        Entry last = _entries[--_count];
        _entries[_count] = default;
        if (_count > 0)
        {
            Sink(last);
        }

        return first;
    }

    /// <summary>Puts an entry in the place of the first one, and from there as far down as it belongs.</summary>
    private void Sink(Entry entry)
    {
        int place = 0;
        for (int child = 1; child < _count; child = (place * Children) + 1)
        {
            int least = child;
            for (int i = child + 1; i < Math.Min(child + Children, _count); i++)
            {
                least = _entries[i].IsBefore(in _entries[least]) ? i : least;
            }

            if (!_entries[least].IsBefore(in entry))
            {
                break;
            }

            _entries[place] = _entries[least];
            place = least;
        }

        _entries[place] = entry;
    }

    private readonly record struct Entry(long AtNs, long Order, Action Action)
    {
        public bool IsBefore(in Entry other) => AtNs < other.AtNs || (AtNs == other.AtNs && Order < other.Order);
    }
}
