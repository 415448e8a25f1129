using System.Globalization;

namespace Kahuna.Tests.Linearizability;

/// <summary>
/// Short words for the operations of written-out histories: a process, its call and return in ms, what it asked and was
/// answered. Stateless.
/// </summary>
internal static class Recorded
{
    public const string Key = "k";
    public const string Lock = "lock";

    public static HistoryOperation Set(int process, int call, int end, string? value, long? revision = null) =>
        One(OperationKind.Set, process, call, end) with
        {
            Arguments = new OperationArguments { Value = value },
            Result = Yes(revision),
        };

    public static HistoryOperation Get(int process, int call, int end, string? value, long? revision = null) =>
        One(OperationKind.Get, process, call, end) with
        {
            Result = Yes(revision) with { HasValue = true, Value = value },
        };

    public static HistoryOperation GetNothing(int process, int call, int end, long? revision = null) =>
        One(OperationKind.Get, process, call, end) with { Result = No(revision) };

    public static HistoryOperation Exists(int process, int call, int end, bool found) =>
        One(OperationKind.Exists, process, call, end) with { Result = new OperationResult { Affirmed = found } };

    public static HistoryOperation Delete(int process, int call, int end, long? revision = null) =>
        One(OperationKind.Delete, process, call, end) with { Result = Yes(revision) };

    public static HistoryOperation Extend(int process, int call, int end, long ttlMs) =>
        One(OperationKind.Extend, process, call, end) with
        {
            Arguments = new OperationArguments { TtlMs = ttlMs },
            Result = Yes(null),
        };

    public static HistoryOperation Increment(
        int process, int call, int end, long sum, long? revision = null, long by = 1) =>
        One(OperationKind.Increment, process, call, end) with
        {
            Arguments = new OperationArguments { By = by },
            Result = Yes(revision) with { HasValue = true, Value = sum.ToString(CultureInfo.InvariantCulture) },
        };

    /// <summary>A holding of a lock; without an end it goes on.</summary>
    public static HistoryOperation Acquire(
        int process,
        int call,
        int end,
        long token,
        int? until = null,
        LockMode mode = LockMode.Exclusive,
        int permits = 0) =>
        One(OperationKind.Acquire, process, call, end) with
        {
            Key = Lock,
            Arguments = new OperationArguments { Mode = mode, Permits = permits },
            Result = new OperationResult { Affirmed = true, Token = token, UntilNs = until * 1_000_000L },
        };

    public static HistoryOperation IfTokenHolds(this HistoryOperation operation, long token) =>
        operation with { Arguments = operation.Arguments with { Fence = new LockFence(Lock, token) } };

    /// <summary>The answer was no: a condition did not hold, or there was nothing to change.</summary>
    public static HistoryOperation Refused(this HistoryOperation operation, long? revision = null) =>
        operation with { Result = No(revision) };

    public static HistoryOperation IfAbsent(this HistoryOperation operation) =>
        operation with { Arguments = operation.Arguments with { OnlyIfAbsent = true } };

    public static HistoryOperation IfPresent(this HistoryOperation operation) =>
        operation with { Arguments = operation.Arguments with { OnlyIfPresent = true } };

    public static HistoryOperation IfValue(this HistoryOperation operation, string? value) =>
        operation with { Arguments = operation.Arguments with { OnlyIfValue = true, ComparedValue = value } };

    public static HistoryOperation IfRevision(this HistoryOperation operation, long revision) =>
        operation with { Arguments = operation.Arguments with { OnlyIfRevision = revision } };

    public static HistoryOperation For(this HistoryOperation operation, long ttlMs) =>
        operation with { Arguments = operation.Arguments with { TtlMs = ttlMs } };

    /// <summary>No answer came.</summary>
    public static HistoryOperation Unanswered(this HistoryOperation operation) => operation.WithUnknownOutcome();

    /// <summary>It surely did not happen.</summary>
    public static HistoryOperation Failed(this HistoryOperation operation) =>
        operation with { Outcome = HistoryOutcome.Fail, Result = OperationResult.Unconstrained };

    private static HistoryOperation One(OperationKind kind, int process, int call, int end) => new()
    {
        Process = process,
        Key = Key,
        Kind = kind,
        CallNs = call * 1_000_000L,
        ReturnNs = end * 1_000_000L,
        Outcome = HistoryOutcome.Ok,
    };

    private static OperationResult Yes(long? revision) => new() { Affirmed = true, Revision = revision };

    private static OperationResult No(long? revision) => new() { Affirmed = false, Revision = revision };
}
