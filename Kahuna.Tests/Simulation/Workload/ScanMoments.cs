namespace Kahuna.Tests.Simulation.Workload;

/// <summary>What a consistent scan says of the keys that it has reached. Immutable.</summary>
/// <param name="BeginNs">When the scan began.</param>
/// <param name="OpenedNs">When its first key was there, or it ended: the moment that it shows is not later.</param>
/// <param name="Revisions">The revision of each key by its name with its durability; null: the key is absent.</param>
internal sealed record ScanMoment(long BeginNs, long OpenedNs, IReadOnlyDictionary<string, long?> Revisions);

/// <summary>
/// The promise of consistent scans: there is a moment at which everything that a scan says was so, for the keys of all
/// partitions at once. What others have written and read leaves to each key only some moments. Owned by one check.
/// </summary>
internal sealed class ScanMoments
{
    private readonly Dictionary<string, List<Call>> _reads;
    private readonly Dictionary<string, List<Call>> _writes;

    private ScanMoments(IEnumerable<Call> calls)
    {
        Call[] told = [.. calls.Where(static call =>
            call is { Outcome: CallOutcome.Ok, AtRevision: null, Revision: > 0 })];
        _reads = ByName(told.Where(static call => call.Kind is CallKind.Get or CallKind.Exists));
        _writes = ByName(told.Where(static call =>
            call is { Done: true, Kind: CallKind.Set or CallKind.Increment or CallKind.Delete }));
    }

    /// <summary>What is wrong with the scans; null: nothing.</summary>
    public static string? Check(IEnumerable<Call> calls, IEnumerable<ScanMoment> scans)
    {
        ScanMoments moments = new(calls);
        return scans.Select(moments.Find).FirstOrDefault(static wrong => wrong is not null);
    }

    private static Dictionary<string, List<Call>> ByName(IEnumerable<Call> calls) =>
        calls.GroupBy(static call => call.Name).ToDictionary(static same => same.Key, static same => same.ToList());

    /// <summary>Why there is no moment; null: there is one.</summary>
    private string? Find(ScanMoment scan)
    {
        Bound first = new(scan.BeginNs, "the scan began");
        Bound last = new(scan.OpenedNs, "the scan was open");
        List<(long FromNs, Bound To)> holes = [];
        foreach ((string name, long? revision) in scan.Revisions)
        {
            List<Call> reads = _reads.GetValueOrDefault(name, []);
            List<Call> writes = _writes.GetValueOrDefault(name, []);
            if (revision is { } shown)
            {
                Narrow(name, shown, reads, writes, ref first, ref last);
            }

            holes.AddRange(OtherRevisions(name, revision, reads, writes));
        }

        // The earliest moment that is left: each hole that it lies in moves it to the end of the hole.
        foreach ((long fromNs, Bound to) in holes.OrderBy(static hole => hole.FromNs))
        {
            if (fromNs < first.Ns && first.Ns < to.Ns)
            {
                first = to;
            }
        }

        return first.Ns <= last.Ns
            ? null
            : $"a scan from {scan.BeginNs} to {scan.OpenedNs} shows a moment not before {first.Ns}, since {first.Why}, "
                + $"and not after {last.Ns}, since {last.Why}";
    }

    /// <summary>
    /// A revision is not there before somebody began to write it, nor before somebody began to read an earlier one, nor
    /// after somebody was told of a later one.
    /// </summary>
    private static void Narrow(
        string name, long shown, List<Call> reads, List<Call> writes, ref Bound first, ref Bound last)
    {
        foreach (Call call in reads.Concat(writes).Where(call => call.Revision > shown))
        {
            last = last.Ns <= call.ReturnNs ? last
                : new Bound(call.ReturnNs, $"{call.Kind} told of revision {call.Revision} of {name}, not {shown}");
        }

        foreach (Call call in reads.Where(call => call.Revision < shown))
        {
            first = first.Ns > call.CallNs ? first
                : new Bound(call.CallNs, $"{call.Kind} found revision {call.Revision} of {name} instead of {shown}");
        }

        // An answer that comes again tells of the same write: the earliest one has made it.
        if (writes.Where(call => call.Revision == shown).MinBy(static call => call.CallNs) is { } write
            && write.CallNs > first.Ns)
        {
            first = new Bound(write.CallNs, $"{write.Kind} made revision {shown} of {name}");
        }
    }

    /// <summary>
    /// A key is at a revision for certain from when somebody was first told of it until somebody last began a read that
    /// found it. A scan that shows another revision, or no key, shows no moment between the two.
    /// </summary>
    private static IEnumerable<(long FromNs, Bound To)> OtherRevisions(
        string name, long? shown, List<Call> reads, List<Call> writes)
    {
        foreach (IGrouping<long?, Call> found in reads.Where(static call => call.Done)
            .GroupBy(static call => call.Revision))
        {
            if (found.Key != shown)
            {
                long fromNs = found.Concat(writes.Where(call => call.Revision == found.Key))
                    .Min(static call => call.ReturnNs);
                long toNs = found.Max(static call => call.CallNs);
                string instead = shown is null ? "nothing" : $"revision {shown}";
                yield return (fromNs, new Bound(toNs, $"{name} had revision {found.Key}, and {instead} is shown"));
            }
        }
    }

    /// <summary>A moment, and why it bounds that of a scan.</summary>
    private readonly record struct Bound(long Ns, string Why);
}
