namespace Kahuna.Benchmark.Verification;

/// <summary>The locks that the workers had, all of them, warmup included: the evidence for <c>--verify</c>. Owned by the run; any thread opens pages, each of which has one writer.</summary>
internal sealed class LockLedger
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

    /// <summary>Looks at everything, after the load.</summary>
    public LockFindings Check()
    {
        List<Entry> all = [];
        long unknown = 0;
        long endedEarly = 0;
        foreach (Page page in _pages)
        {
            all.AddRange(page.Entries);
            unknown += page.Open;
            endedEarly += page.EndedEarly;
        }

        all.Sort(static (left, right) => string.CompareOrdinal(left.Name, right.Name) is var names and not 0 ? names : left.Token.CompareTo(right.Token));
        long overlaps = 0;
        long duplicates = 0;
        long disorder = 0;
        for (int first = 0; first < all.Count;)
        {
            int end = first + 1;
            while (end < all.Count && all[end].Name == all[first].Name)
            {
                end++;
            }

            Span<Entry> ofOne = System.Runtime.InteropServices.CollectionsMarshal.AsSpan(all)[first..end];
            overlaps += Overlaps(ofOne, out long twice);
            duplicates += twice;
            disorder += Disorder(ofOne);
            first = end;
        }

        return new LockFindings(all.Count, overlaps, duplicates, disorder, endedEarly, unknown);
    }

    /// <summary>Grants that came before whoever had an earlier token gave it back. In the order of tokens.</summary>
    private static long Overlaps(ReadOnlySpan<Entry> byToken, out long duplicates)
    {
        long count = 0;
        duplicates = 0;
        long latestUntil = long.MinValue;
        for (int i = 0; i < byToken.Length; i++)
        {
            count += byToken[i].Granted < latestUntil ? 1 : 0;
            duplicates += i > 0 && byToken[i].Token == byToken[i - 1].Token ? 1 : 0;
            latestUntil = Math.Max(latestUntil, byToken[i].Until);
        }

        return count;
    }

    /// <summary>Locks that were asked for after a later token had been granted.</summary>
    private static long Disorder(ReadOnlySpan<Entry> byToken)
    {
        long count = 0;
        long earliestGrant = long.MaxValue;
        for (int i = byToken.Length - 1; i >= 0; i--)
        {
            count += byToken[i].Start > earliestGrant ? 1 : 0;
            earliestGrant = Math.Min(earliestGrant, byToken[i].Granted);
        }

        return count;
    }

    /// <summary>One lock that a worker had: when it was asked for, when it came, and until when the worker counted on it, in ticks.</summary>
    internal readonly record struct Entry(string Name, long Token, long Start, long Granted, long Until);

    /// <summary>What one worker had.</summary>
    internal sealed class Page
    {
        private readonly List<Entry> _entries = [];

        public IReadOnlyList<Entry> Entries => _entries;

        /// <summary>Requests that were granted a lock or may have been, and did not say which.</summary>
        public long Open { get; private set; }

        public long EndedEarly { get; private set; }

        public void Begin() => Open++;

        public void Had(in Entry entry)
        {
            Open--;
            _entries.Add(entry);
        }

        /// <summary>The request surely got no lock.</summary>
        public void GotNothing() => Open--;

        /// <summary>The lease went on, and the lock was not held.</summary>
        public void LostEarly() => EndedEarly++;
    }
}
