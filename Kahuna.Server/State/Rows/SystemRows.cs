using Kahuna.Server.Primitives;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// Rows that are no keys: what the state remembers of clients, sequences and itself, under names that begin with a byte
/// that no key does. They are stored, sent and digested like keys, are changed in place, and are freed when they end.
/// Owned by one <see cref="KeyStore"/>; not thread-safe.
/// </summary>
internal sealed class SystemRows(KeyStore store)
{
    private readonly RowSet?[] _lists = NewLists();

    /// <summary>How many there are.</summary>
    public int Rows { get; private set; }

    /// <summary>The rows of a kind that is listed.</summary>
    public RowSet Of(SystemRowKind kind)
    {
        RowSet? list = _lists[kind.Letter];
        InvariantException.Require(list is not null, "only kinds that are listed have a list");
        return list;
    }

    /// <summary>Row of a name; 0 when there is none.</summary>
    public int Find(ReadOnlySpan<byte> name) => store.Keys.Find(name, store.Keys.HashOf(name));

    /// <summary>Adds a row.</summary>
    public int Create(SystemRowKind kind, ReadOnlySpan<byte> name, ReadOnlySpan<byte> value)
    {
        InvariantException.Require(SystemRowKind.Of(name) == kind, "a row of the system has a name of its kind");
        int row = store.Create(name, store.Keys.HashOf(name), value, kind.Flags);
        Added(row, name);
        return row;
    }

    /// <summary>A row is there by now: created, or loaded.</summary>
    public void Added(int row, ReadOnlySpan<byte> name)
    {
        Rows++;
        _lists[name[1]]?.Add(row);
    }

    /// <summary>Frees a row.</summary>
    public void Free(int row)
    {
        store.BeginChange(row);
        ClearTime(row);
        store.AddToDigest(unchecked(0 - store.Keys[row].Digest));
        Rows--;
        InvariantException.Require(
            Rows >= 0 && (store.Keys[row].Flags & KeyEntryFlags.System) != 0, "only rows of the system are freed");
        _lists[store.Keys.Key(in store.Keys[row])[1]]?.Remove(row);
        store.Keys.Free(row);
    }

    /// <summary>Gives a row another value of the same length.</summary>
    public void Rewrite(int row, ReadOnlySpan<byte> value)
    {
        store.BeginChange(row);
        ref KeyEntry entry = ref store.Keys[row];
        InvariantException.Require(value.Length == entry.ValueLength, "a row is rewritten in its length");
        store.AddToDigest(unchecked(0 - entry.Digest));
        value.CopyTo(store.Keys.Writable(in entry));
        store.AddDigest(ref entry);
    }

    /// <summary>A row's value, to be changed in place; afterwards <see cref="EndChange"/>.</summary>
    public Span<byte> BeginChange(int row)
    {
        store.BeginChange(row);
        return store.Keys.Writable(in store.Keys[row]);
    }

    /// <summary>What the change made of the row's digest: so much more than before.</summary>
    public void EndChange(int row, ulong difference)
    {
        store.Keys[row].Digest = unchecked(store.Keys[row].Digest + difference);
        store.AddToDigest(difference);
    }

    /// <summary>A row's value, to be changed in place in any way; afterwards <see cref="Close"/>.</summary>
    public Span<byte> Open(int row)
    {
        store.BeginChange(row);
        ref KeyEntry entry = ref store.Keys[row];
        store.AddToDigest(unchecked(0 - entry.Digest));
        return store.Keys.Writable(in entry);
    }

    /// <summary>The change is made.</summary>
    public void Close(int row) => store.AddDigest(ref store.Keys[row]);

    /// <summary>Gives a row a time among those of its kind, or another one.</summary>
    public void SetTime(int row, long timeMs)
    {
        ClearTime(row);
        store.BeginChange(row);
        ref KeyEntry entry = ref store.Keys[row];
        store.HeapOf(in entry).Set(row, timeMs);
        store.AddToDigest(StateDigest.OfDeadline(row, timeMs));
    }

    /// <summary>Takes a row's time away, if it has one.</summary>
    public void ClearTime(int row)
    {
        ref KeyEntry entry = ref store.Keys[row];
        if (entry.ExpirySlot != 0)
        {
            store.BeginChange(row);
            store.AddToDigest(unchecked(0 - StateDigest.OfDeadline(row, store.DeadlineOf(in entry))));
            store.HeapOf(in entry).Remove(row);
        }
    }

    /// <summary>
    /// Puts a session at its time among those that remember outcomes or those that do not, whichever its value says. It
    /// is in <paramref name="from"/> until then; null: in none.
    /// </summary>
    public void PlaceSession(int row, ExpiryHeap? from, long timeMs)
    {
        ref KeyEntry entry = ref store.Keys[row];
        InvariantException.Require(
            entry.IsSession && (from is not null) == (entry.ExpirySlot != 0), "a session stands in one heap");
        ExpiryHeap to = store.HeapOf(in entry);
        if (from is not null)
        {
            store.AddToDigest(unchecked(0 - StateDigest.OfDeadline(row, from.DeadlineOf(in entry))));
            if (from != to)
            {
                from.Remove(row);
            }
        }

        to.Set(row, timeMs);
        store.AddToDigest(StateDigest.OfDeadline(row, timeMs));
    }

    private static RowSet?[] NewLists()
    {
        RowSet?[] lists = new RowSet?[byte.MaxValue + 1];
        foreach (SystemRowKind kind in SystemRowKind.All)
        {
            lists[kind.Letter] = kind.IsListed ? new RowSet() : null;
        }

        return lists;
    }
}
