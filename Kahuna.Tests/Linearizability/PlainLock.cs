
namespace Kahuna.Tests.Linearizability;

/// <summary>
/// The rules of a lock's history as they are said, each pair of operations with each other: slow, and plain enough to
/// be read. Stateless.
/// </summary>
internal static class PlainLock
{
    public static bool IsKept(
        IReadOnlyList<HistoryOperation> operations, IReadOnlyList<HistoryOperation> writes, bool exclusion)
    {
        List<HistoryOperation> grants =
            [.. operations.Where(static operation => operation.Outcome == HistoryOutcome.Ok)];
        List<HistoryOperation> believed = [.. grants.Where(static grant => Until(grant) > grant.ReturnNs)];
        return grants.All(a => grants.All(b => ReferenceEquals(a, b) || AreInOrder(a, b)))
            && (!exclusion || believed.All(
                a => AreTogether(believed, a) && believed.All(b => ReferenceEquals(a, b) || AreGrantedInOrder(a, b))))
            && writes.Where(static write => write.Outcome == HistoryOutcome.Ok)
                .All(write => !grants.Any(grant => IsOver(write, grant)));
    }

    private static long Until(HistoryOperation grant) => grant.Result.UntilNs ?? long.MaxValue;

    private static bool AreInOrder(HistoryOperation a, HistoryOperation b) =>
        a.Result.Token != b.Result.Token && (a.ReturnNs >= b.CallNs || a.Result.Token < b.Result.Token);

    /// <summary>At the moment at which one is told of its grant.</summary>
    private static bool AreTogether(List<HistoryOperation> believed, HistoryOperation told)
    {
        List<HistoryOperation> holders =
            [.. believed.Where(one => one.ReturnNs <= told.ReturnNs && told.ReturnNs < Until(one))];
        return told.Arguments.Mode switch
        {
            LockMode.Exclusive => holders.Count == 1,
            LockMode.Shared => holders.All(static one => one.Arguments.Mode == LockMode.Shared),
            _ =>
                holders.Count <= told.Arguments.Permits
                    && holders.All(one => one.Arguments.Permits == told.Arguments.Permits),
        };
    }

    private static bool AreGrantedInOrder(HistoryOperation a, HistoryOperation b)
    {
        bool canShare = a.Arguments.Mode == b.Arguments.Mode && a.Arguments.Mode is LockMode.Shared or LockMode.Permit;
        return canShare || a.ReturnNs >= b.ReturnNs || a.Result.Token < b.Result.Token;
    }

    private static bool IsOver(HistoryOperation write, HistoryOperation grant) =>
        grant.Arguments.Mode == LockMode.Exclusive
            && grant.Result.Token > write.Arguments.Fence!.Token
            && grant.ReturnNs < write.CallNs;
}
