using System.Runtime.InteropServices;

namespace Kahuna.Benchmark.Verification;

/// <summary>The locks that the workers had. As <see cref="Ledger{TEntry}"/>.</summary>
internal sealed class LockLedger : Ledger<LockLedger.Entry>
{
    private long _endedEarly;

    /// <summary>A lease went on, and the lock was not held. Any thread.</summary>
    public void LostEarly() => Interlocked.Increment(ref _endedEarly);

    /// <summary>Looks at everything, after the load.</summary>
    public LockFindings Check()
    {
        (List<Entry> all, long unknown) = Gather(static (left, right) =>
            string.CompareOrdinal(left.Name, right.Name) is var names and not 0
                ? names
                : left.Token.CompareTo(right.Token));
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

            Span<Entry> ofOne = CollectionsMarshal.AsSpan(all)[first..end];
            overlaps += Overlaps(ofOne, out long twice);
            duplicates += twice;
            disorder += Disorder(ofOne);
            first = end;
        }

        return new LockFindings(all.Count, overlaps, duplicates, disorder, Interlocked.Read(ref _endedEarly), unknown);
    }

    /// <summary>Grants that came before the holder of an earlier token released it. In the order of tokens.</summary>
    private static long Overlaps(ReadOnlySpan<Entry> byToken, out long duplicates)
    {
        long count = 0;
        duplicates = 0;
        long latestUntil = long.MinValue;
        for (int i = 0; i < byToken.Length; i++)
        {
            count += byToken[i].Came < latestUntil ? 1 : 0;
            duplicates += i > 0 && byToken[i].Token == byToken[i - 1].Token ? 1 : 0;
            latestUntil = Math.Max(latestUntil, byToken[i].Until);
        }

        return count;
    }

    /// <summary>
    /// One lock that a worker had: when it was asked for, when it came, and until when the worker counted on it, in
    /// ticks.
    /// </summary>
    internal readonly record struct Entry(string Name, long Token, long Start, long Came, long Until) : ILedgerEntry;
}
