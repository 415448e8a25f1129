
namespace Kahuna.Tests.Linearizability;

/// <summary>
/// Tells whether the holdings of one lock are as promised: tokens come once and grow, nobody has the lock together with
/// somebody who must have it alone, and no write counts with the token of a holding that is over. No search is needed,
/// since tokens show the order of the grants. Stateless; any thread.
/// </summary>
internal static class LockChecker
{
    public const string TokensAreGivenOnce = "a token is granted once";
    public const string TokensGrow = "who calls after a grant gets a higher token";
    public const string HoldersExclude = "a lock is held alone, shared, or by as many as it has permits";
    public const string GrantsAreInOrder = "grants are in the order of their tokens";
    public const string FencesHold = "a write counts only while its token holds the lock";

    /// <summary>Checks the holdings of one lock, and the writes that were to count only with its tokens.</summary>
    /// <param name="name">The lock.</param>
    /// <param name="operations">Its operations, those included that surely did not happen.</param>
    /// <param name="fencedWrites">Writes with a token. Those with that of another lock are left out.</param>
    /// <param name="exclusion">False: <see cref="HoldersExclude"/> and <see cref="GrantsAreInOrder"/>, which rest on
    /// the time until which clients believed that they had the lock, are not checked.</param>
    public static KeyVerdict Check(
        string name,
        IReadOnlyList<HistoryOperation> operations,
        IReadOnlyList<HistoryOperation> fencedWrites,
        bool exclusion = true)
    {
        List<HistoryOperation> writes =
        [
            .. fencedWrites.Where(write => write.Arguments.Fence?.Lock == name && write.Outcome != HistoryOutcome.Fail)
                .OrderBy(static write => write.CallNs),
        ];
        List<HistoryOperation> grants =
        [
            .. operations.Where(
                static operation => operation.Outcome == HistoryOutcome.Ok && operation.Result.Affirmed != false)
                .OrderBy(static grant => grant.ReturnNs),
        ];
        Contradiction? found = CheckTokens(grants)
            ?? (exclusion ? CheckHolders(grants) ?? CheckGrants(grants) : null)
            ?? CheckWrites(grants, writes);
        if (found is null)
        {
            return new KeyVerdict(name, Verdict.Linearizable, 0, null);
        }

        int others = operations.Count(static operation => operation.Outcome != HistoryOutcome.Fail)
            + writes.Count - found.Operations.Count;
        return new KeyVerdict(name, Verdict.NotLinearizable, 0, found with { LeftOut = others });
    }

    private static long TokenOf(HistoryOperation grant) => grant.Result.Token!.Value;

    private static long UntilNsOf(HistoryOperation grant) => grant.Result.UntilNs ?? long.MaxValue;

    /// <summary>Each once, and higher than all that somebody was told before the call.</summary>
    private static Contradiction? CheckTokens(List<HistoryOperation> grants)
    {
        List<HistoryOperation> byToken = [.. grants.OrderByDescending(TokenOf)];
        HistoryOperation? earliest = null;
        for (int i = 0; i < byToken.Count; i++)
        {
            HistoryOperation grant = byToken[i];
            if (i > 0 && TokenOf(grant) == TokenOf(byToken[i - 1]))
            {
                return Break(TokensAreGivenOnce, byToken[i - 1], grant);
            }

            if (grant.CallNs > earliest?.ReturnNs)
            {
                return Break(TokensGrow, earliest, grant);
            }

            earliest = grant.ReturnNs >= earliest?.ReturnNs ? earliest : grant;
        }

        return null;
    }

    /// <summary>
    /// Goes through the holdings in time and keeps those that are not over yet. They can all be held together, so
    /// comparing with one of them is enough.
    /// </summary>
    private static Contradiction? CheckHolders(List<HistoryOperation> grants)
    {
        PriorityQueue<HistoryOperation, long> holders = new();
        foreach (HistoryOperation grant in Believed(grants))
        {
            while (holders.TryPeek(out _, out long untilNs) && untilNs <= grant.ReturnNs)
            {
                holders.Dequeue();
            }

            if (holders.TryPeek(out HistoryOperation? other, out _)
                && !(CanShare(grant, other) && grant.Arguments.Permits == other.Arguments.Permits))
            {
                return Break(HoldersExclude, other, grant);
            }

            if (grant.Arguments.Mode == LockMode.Permit && holders.Count == grant.Arguments.Permits)
            {
                return Break(
                    HoldersExclude, [.. holders.UnorderedItems.Select(static holder => holder.Element), grant]);
            }

            holders.Enqueue(grant, UntilNsOf(grant));
        }

        return null;
    }

    /// <summary>
    /// Of two holdings that cannot have been at one time, the later one has the higher token. Those that share a lock
    /// may learn of it in any order.
    /// </summary>
    private static Contradiction? CheckGrants(List<HistoryOperation> grants)
    {
        Dictionary<LockMode, HistoryOperation> highest = [];
        foreach (HistoryOperation grant in Believed(grants))
        {
            foreach (HistoryOperation before in highest.Values)
            {
                if (!CanShare(grant, before) && TokenOf(before) > TokenOf(grant))
                {
                    return Break(GrantsAreInOrder, before, grant);
                }
            }

            LockMode mode = grant.Arguments.Mode;
            highest[mode] = highest.TryGetValue(mode, out HistoryOperation? last) && TokenOf(last) > TokenOf(grant)
                ? last
                : grant;
        }

        return null;
    }

    /// <summary>
    /// Whoever has the lock alone with a higher token was granted it after every holding with a lower one. An answer of
    /// no tells as much as one of yes, because the token is looked at first.
    /// </summary>
    private static Contradiction? CheckWrites(List<HistoryOperation> grants, List<HistoryOperation> writes)
    {
        List<HistoryOperation> alone = [.. grants.Where(static grant => grant.Arguments.Mode == LockMode.Exclusive)];
        HistoryOperation? highest = null;
        int next = 0;
        foreach (HistoryOperation write in writes.Where(static write => write.Outcome == HistoryOutcome.Ok))
        {
            for (; next < alone.Count && alone[next].ReturnNs < write.CallNs; next++)
            {
                highest = highest is not null && TokenOf(highest) > TokenOf(alone[next]) ? highest : alone[next];
            }

            if (highest is not null && TokenOf(highest) > write.Arguments.Fence!.Token)
            {
                return Break(FencesHold, highest, write);
            }
        }

        return null;
    }

    /// <summary>
    /// The holdings that somebody believed in. Of one that was over when its client was told of it nobody can tell when
    /// it was.
    /// </summary>
    private static IEnumerable<HistoryOperation> Believed(List<HistoryOperation> grants) =>
        grants.Where(static grant => UntilNsOf(grant) > grant.ReturnNs);

    private static bool CanShare(HistoryOperation one, HistoryOperation other) =>
        one.Arguments.Mode == other.Arguments.Mode && one.Arguments.Mode != LockMode.Exclusive;

    private static Contradiction Break(string rule, params HistoryOperation[] operations) =>
        new([.. operations.OrderBy(static operation => operation.CallNs)], 0, IsMinimal: true) { Rule = rule };
}
