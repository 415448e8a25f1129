namespace Kahuna.Benchmark.Verification;

/// <summary>What the workers got from a sequence, all of it, warmup included: the evidence for <c>--verify</c>. Owned by the run; any thread opens pages, each of which has one writer.</summary>
internal sealed class SequenceLedger
{
    private readonly Lock _lock = new();
    private readonly List<Page> _pages = [];

    /// <summary>The sequence's latest value before the load; 0 when it had none.</summary>
    public long Before { get; set; }

    /// <summary>The same after it; null when it could not be read.</summary>
    public long? After { get; set; }

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

    /// <summary>Looks at everything, after the load.</summary>
    public SequenceFindings Check()
    {
        List<Entry> all = [];
        long unknown = 0;
        foreach (Page page in _pages)
        {
            all.AddRange(page.Entries);
            unknown += page.Open;
        }

        all.Sort(static (left, right) => left.Value.CompareTo(right.Value));
        long duplicates = 0;
        long missing = 0;
        long latest = Before;
        foreach (Entry entry in all)
        {
            duplicates += entry.Value <= latest ? 1 : 0;
            missing += Math.Max(0, entry.Value - latest - 1);
            latest = Math.Max(latest, entry.Value);
        }

        missing += Math.Max(0, (After ?? latest) - latest);
        long excused = Math.Min(missing, unknown);
        return new SequenceFindings(all.Count, duplicates, missing - excused, Disorder(all), unknown, excused);
    }

    /// <summary>Values whose request began after the answer to a request that got a later value.</summary>
    private static long Disorder(List<Entry> byValue)
    {
        long count = 0;
        long earliestEnd = long.MaxValue;
        for (int i = byValue.Count - 1; i >= 0; i--)
        {
            count += byValue[i].Start > earliestEnd ? 1 : 0;
            earliestEnd = Math.Min(earliestEnd, byValue[i].End);
        }

        return count;
    }

    /// <summary>One value: when it was asked for and when it came, in ticks.</summary>
    internal readonly record struct Entry(long Value, long Start, long End);

    /// <summary>What one worker got.</summary>
    internal sealed class Page
    {
        private readonly List<Entry> _entries = [];

        public IReadOnlyList<Entry> Entries => _entries;

        /// <summary>Requests that took a value or may have, and did not say which.</summary>
        public long Open { get; private set; }

        public void Begin() => Open++;

        public void Got(long value, long start, long end)
        {
            Open--;
            _entries.Add(new Entry(value, start, end));
        }

        /// <summary>The request surely took no value.</summary>
        public void GotNothing() => Open--;
    }
}
