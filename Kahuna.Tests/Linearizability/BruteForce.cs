namespace Kahuna.Tests.Linearizability;

/// <summary>
/// The definition itself, for histories of a few operations of one key: every order of every choice of the operations
/// without an answer, with the key expiring at every place or not at all, and a deleted one being forgotten. Each
/// operation has its moment as early as it can be, and an order is true to time when no moment comes after its end.
/// Remembers nothing. Owned by a test.
/// </summary>
internal sealed class BruteForce(CheckerOptions options, long revisionMax)
{
    private const long Never = long.MaxValue;

    public static bool IsLinearizable(IEnumerable<HistoryOperation> operations, CheckerOptions options) =>
        new BruteForce(
            options,
            operations
                .Select(operation => Math.Max(operation.Result.Revision ?? 0, operation.Arguments.OnlyIfRevision ?? 0))
                .Append(0)
                .Max())
                .CanEnd(
            PlainRegister.Empty,
            0,
            [.. operations.Where(operation => operation.Outcome != HistoryOutcome.Fail)]);

    private bool CanEnd(PlainRegister register, long nowNs, HistoryOperation[] left)
    {
        if (left.All(operation => operation.Outcome == HistoryOutcome.Unknown))
        {
            return true;
        }

        foreach (HistoryOperation next in left)
        {
            // A key that is made anew may have been forgotten, so that it begins with any higher revision, also one
            // above all that anybody names.
            bool isForgotten = !register.Exists && next.Kind is OperationKind.Set or OperationKind.Increment;
            for (long revision = register.Revision;
                revision <= (isForgotten ? Math.Max(revisionMax, register.Revision) : register.Revision);
                revision++)
            {
                PlainRegister before = register with { Revision = revision };
                if ((revision == register.Revision || before.Apply(next).After.Exists)
                    && CanBeNext(before, nowNs, next, left))
                {
                    return true;
                }
            }
        }

        return register.Lease is not null
            && CanEnd(register.Expired(), Math.Max(nowNs, EarliestExpiry(register.Lease)), left);
    }

    private bool CanBeNext(PlainRegister register, long nowNs, HistoryOperation next, HistoryOperation[] left)
    {
        long momentNs = Math.Max(nowNs, next.CallNs);
        (PlainRegister after, OperationResult answer) = register.Apply(next);
        bool inTime = momentNs <= EndOf(next) && (register.Lease is null || momentNs <= LatestExpiry(register.Lease));
        bool agrees = next.Outcome == HistoryOutcome.Unknown || PlainRegister.Agrees(next, next.Result, answer);
        return inTime
            && agrees
            && CanEnd(after, momentNs, [.. left.Where(operation => !ReferenceEquals(operation, next))]);
    }

    private static long EndOf(HistoryOperation operation) =>
        operation.Outcome == HistoryOutcome.Ok ? operation.ReturnNs!.Value : Never;

    private long EarliestExpiry(HistoryOperation lease) =>
        (long)(lease.CallNs + (lease.Arguments.TtlMs!.Value * 1e6) - options.TtlSlack.TotalNanoseconds);

    private long LatestExpiry(HistoryOperation lease) =>
        options.TtlLatenessMax is { } lateness && EndOf(lease) != Never
            ? (long)(EndOf(lease) + (lease.Arguments.TtlMs!.Value * 1e6) + lateness.TotalNanoseconds)
            : Never;
}
