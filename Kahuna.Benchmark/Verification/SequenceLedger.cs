using System.Runtime.InteropServices;

namespace Kahuna.Benchmark.Verification;

/// <summary>What the workers got from a sequence. As <see cref="Ledger{TEntry}"/>.</summary>
internal sealed class SequenceLedger : Ledger<SequenceLedger.Entry>
{
    /// <summary>The sequence's latest value before the load; 0 when it had none.</summary>
    public long Before { get; set; }

    /// <summary>The same after it; null when it could not be read.</summary>
    public long? After { get; set; }

    /// <summary>Looks at everything, after the load.</summary>
    public SequenceFindings Check()
    {
        (List<Entry> all, long unknown) = Gather(static (left, right) => left.Value.CompareTo(right.Value));
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
        return new SequenceFindings(
            all.Count, duplicates, missing - excused, Disorder(CollectionsMarshal.AsSpan(all)), unknown, excused);
    }

    /// <summary>One value: when it was asked for and when it came, in ticks.</summary>
    internal readonly record struct Entry(long Value, long Start, long Came) : ILedgerEntry;
}
