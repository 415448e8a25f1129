namespace Kahuna.Tests.Linearizability;

/// <summary>
/// The definition itself, for histories of a few operations of one key: every order of every choice of the operations without an
/// answer, with the key expiring at every place or not at all. Each operation has its moment as early as it can be, and an order is
/// true to time when no moment comes after its end. Remembers nothing. Owned by a test.
/// </summary>
internal sealed class BruteForce(CheckerOptions options)
{
    private const long Never = long.MaxValue;

    public static bool IsLinearizable(IEnumerable<HistoryOperation> operations, CheckerOptions options) =>
        new BruteForce(options).CanEnd(PlainRegister.Empty, 0, [.. operations.Where(operation => operation.Outcome != HistoryOutcome.Fail)]);

    private bool CanEnd(PlainRegister register, long nowNs, HistoryOperation[] left)
    {
        if (left.All(operation => operation.Outcome == HistoryOutcome.Unknown))
        {
            return true;
        }

        foreach (HistoryOperation next in left)
        {
            long momentNs = Math.Max(nowNs, next.CallNs);
            (PlainRegister after, OperationResult answer) = register.Apply(next);
            bool inTime = momentNs <= EndOf(next) && (register.Lease is null || momentNs <= LatestExpiry(register.Lease));
            bool agrees = next.Outcome == HistoryOutcome.Unknown || PlainRegister.Agrees(next.Result, answer);
            if (inTime && agrees && CanEnd(after, momentNs, [.. left.Where(operation => !ReferenceEquals(operation, next))]))
            {
                return true;
            }
        }

        return register.Lease is not null && CanEnd(register.Expired(), Math.Max(nowNs, EarliestExpiry(register.Lease)), left);
    }

    private static long EndOf(HistoryOperation operation) => operation.Outcome == HistoryOutcome.Ok ? operation.ReturnNs!.Value : Never;

    private long EarliestExpiry(HistoryOperation lease) => (long)(lease.CallNs + (lease.Arguments.TtlMs!.Value * 1e6) - options.TtlSlack.TotalNanoseconds);

    private long LatestExpiry(HistoryOperation lease) =>
        options.TtlLatenessMax is { } lateness && EndOf(lease) != Never ? (long)(EndOf(lease) + (lease.Arguments.TtlMs!.Value * 1e6) + lateness.TotalNanoseconds) : Never;
}
