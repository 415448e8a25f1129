using Kahuna.Server.Primitives;

namespace Kahuna.Tests.Raft;

/// <summary>A test node's log, on its disk or in its memory: entries behind a start. Owned by one node.</summary>
internal sealed class DiskLog
{
    private readonly List<LogItem> _items = [];

    /// <summary>The index before the first entry.</summary>
    public ulong Start { get; private set; }

    public Term StartTerm { get; private set; }

    public ulong Last => Start + (ulong)_items.Count;

    public IReadOnlyList<LogItem> Items => _items;

    public LogItem this[ulong index] => _items[(int)(index - Start) - 1];

    public Term TermAt(ulong index) => index == Start ? StartTerm : this[index].Term;

    /// <summary>
    /// The log holds the entry, or held it before a truncation from the front, which removes only committed entries.
    /// </summary>
    public bool Holds(ulong index, LogItem item) => index <= Start || (index <= Last && this[index] == item);

    public IEnumerable<LogItem> Behind(ulong index) => _items.Skip((int)(index - Start));

    public void Store(LogIndex first, IReadOnlyCollection<LogItem> items)
    {
        Assert.True(
            first.Value > Start && first.Value <= Last + 1,
            $"entries from {first} are persisted without a gap behind {Start}..{Last}");
        int keep = (int)(first.Value - Start) - 1;
        _items.RemoveRange(keep, _items.Count - keep);
        _items.AddRange(items);
    }

    public void CutThrough(ulong index)
    {
        StartTerm = TermAt(index);
        _items.RemoveRange(0, (int)(index - Start));
        Start = index;
    }

    /// <summary>The log is empty and continues after this entry.</summary>
    public void Restart(ulong index, Term term)
    {
        _items.Clear();
        Start = index;
        StartTerm = term;
    }

    public DiskLog Copy()
    {
        var copy = new DiskLog { Start = Start, StartTerm = StartTerm };
        copy._items.AddRange(_items);
        return copy;
    }

    public List<TermRun> Terms()
    {
        var terms = new List<TermRun>();
        for (ulong index = Start + 1; index <= Last; index++)
        {
            if (terms.Count == 0 || terms[^1].Term != this[index].Term)
            {
                terms.Add(new TermRun(new LogIndex(index), this[index].Term));
            }
        }

        return terms;
    }
}
