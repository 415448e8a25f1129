using Kahuna.Wire.Watches;

namespace Kahuna.Server.Api.Watches;

/// <summary>One watch of a stream. Owned by its <see cref="WatchReader"/>.</summary>
/// <param name="id">Its id on the stream.</param>
/// <param name="level">The keys of its durability.</param>
/// <param name="withValues">Its changes carry values.</param>
internal sealed class Watch(uint id, WatchLevel level, bool withValues)
{
    public uint Id => id;

    public WatchLevel Level => level;

    public bool WithValues => withValues;

    /// <summary>Which keys it is about.</summary>
    public Filter<Watch> Filter { get; set; } = null!;

    /// <summary>The next watch of the stream with the same filter.</summary>
    public Watch? Next { get; set; }

    /// <summary>The watch before it with the same filter.</summary>
    public Watch? Previous { get; set; }

    /// <summary>
    /// Where it began in each group of its level; null when all cursors have passed that. Shared with other watches,
    /// never changed.
    /// </summary>
    public ChangePoint[]? Starts { get; set; }

    /// <summary>Watches of the stream that began later have a greater number.</summary>
    public long Number { get; init; }

    /// <summary>The memory it is counted with.</summary>
    public long Bytes { get; init; }
}

/// <summary>The watches of a stream for keys of one durability. Owned by its <see cref="WatchReader"/>.</summary>
/// <param name="durability">The durability.</param>
/// <param name="cursors">The stream's place in each group of that durability, by partition.</param>
internal sealed class WatchLevel(Durability durability, WatchCursor[] cursors)
{
    private readonly HashSet<Watch> _starting = [];

    public Durability Durability => durability;

    public WatchCursor[] Cursors => cursors;

    /// <summary>The filters, each with its first watch.</summary>
    public FilterIndex<Watch> Filters { get; } = new();

    /// <summary>Number of watches.</summary>
    public int Count { get; private set; }

    /// <summary>Adds a watch to those of its filter.</summary>
    public void Add(Watch watch, Filter<Watch> filter)
    {
        watch.Filter = filter;
        if (filter.Value != watch)
        {
            watch.Next = filter.Value;
            filter.Value.Previous = watch;
            filter.Value = watch;
        }

        _starting.Add(watch);
        Count++;
    }

    /// <summary>Takes a watch from those of its filter. True: it was the last one, and the filter is gone.</summary>
    public bool Remove(Watch watch)
    {
        _starting.Remove(watch);
        Count--;
        watch.Next?.Previous = watch.Previous;
        if (watch.Previous is not null)
        {
            watch.Previous.Next = watch.Next;
            return false;
        }

        if (watch.Next is not null)
        {
            watch.Filter.Value = watch.Next;
            return false;
        }

        Filters.Remove(watch.Filter);
        return true;
    }

    /// <summary>Drops the starts of watches when all cursors have passed them.</summary>
    public void Settle()
    {
        if (_starting.Count == 0 || !Array.TrueForAll(cursors, static cursor => cursor.IsSettled))
        {
            return;
        }

        foreach (Watch watch in _starting)
        {
            watch.Starts = null;
        }

        _starting.Clear();
        _starting.TrimExcess();
    }
}
