namespace Kahuna.Benchmark.Verification;

/// <summary>One thing that a worker got: when it was asked for and when it came, in ticks.</summary>
internal interface ILedgerEntry
{
    long Start { get; }

    long Came { get; }
}

/// <summary>
/// What all workers got, warmup included: the evidence for <c>--verify</c>. Owned by the run; any thread opens pages,
/// each of which has one writer.
/// </summary>
internal abstract class Ledger<TEntry>
    where TEntry : struct, ILedgerEntry
{
    private readonly Lock _lock = new();
    private readonly List<Page> _pages = [];

    /// <summary>A page for one worker.</summary>
    public Page Open()
    {
        Page page = new();
        lock (_lock)
        {
            _pages.Add(page);
        }

        return page;
    }

    /// <summary>
    /// Everything that was written down, after the load, in this order; and how many requests have not said what they
    /// got.
    /// </summary>
    protected (List<TEntry> Entries, long Unknown) Gather(Comparison<TEntry> order)
    {
        List<TEntry> all = [];
        long unknown = 0;
        foreach (Page page in _pages)
        {
            all.AddRange(page.Entries);
            unknown += page.Unanswered;
        }

        all.Sort(order);
        return (all, unknown);
    }

    /// <summary>Entries that were asked for after a later one of the order had come.</summary>
    protected static long Disorder(ReadOnlySpan<TEntry> inOrder)
    {
        long count = 0;
        long earliest = long.MaxValue;
        for (int i = inOrder.Length - 1; i >= 0; i--)
        {
            count += inOrder[i].Start > earliest ? 1 : 0;
            earliest = Math.Min(earliest, inOrder[i].Came);
        }

        return count;
    }

    /// <summary>What one worker got.</summary>
    internal sealed class Page
    {
        private readonly List<TEntry> _entries = [];

        public IReadOnlyList<TEntry> Entries => _entries;

        /// <summary>Requests that got something or may have, and did not say what.</summary>
        public long Unanswered { get; private set; }

        public void Begin() => Unanswered++;

        public void Got(in TEntry entry)
        {
            Unanswered--;
            _entries.Add(entry);
        }

        /// <summary>The request surely got nothing.</summary>
        public void GotNothing() => Unanswered--;
    }
}
