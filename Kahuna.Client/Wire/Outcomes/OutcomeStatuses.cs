using static Kahuna.OperationOutcome;

namespace Kahuna.Wire.Outcomes;

/// <summary>
/// One row per status, from which the client's retries, its errors, the gRPC statuses and the documents are derived.
/// Stateless, any thread.
/// </summary>
internal static class OutcomeStatuses
{
    // Numbers of gRPC status codes: https://grpc.io/docs/guides/status-codes/
    private const int Ok = 0;
    private const int InvalidArgument = 3;
    private const int DeadlineExceeded = 4;
    private const int PermissionDenied = 7;
    private const int ResourceExhausted = 8;
    private const int FailedPrecondition = 9;
    private const int Aborted = 10;
    private const int OutOfRange = 11;
    private const int Unimplemented = 12;
    private const int Internal = 13;
    private const int Unavailable = 14;
    private const int Unauthenticated = 16;

    private static readonly OutcomeRow?[] s_byStatus = ByStatus(
    [
        // Carried out as the operation defines.
        new(OutcomeStatus.Applied, Happened, RetryRule.Ends, Ok, null, "The write took effect."),
        new(OutcomeStatus.Found, DidNotHappen, RetryRule.Ends, Ok, null, "The read found the key."),
        new(OutcomeStatus.NotFound, DidNotHappen, RetryRule.Ends, Ok, null, "The key does not exist."),
        new(OutcomeStatus.ConditionFailed, DidNotHappen, RetryRule.Ends, Ok, null,
            "A condition did not hold; nothing was changed."),
        new(OutcomeStatus.Queued, Happened, RetryRule.Ends, Ok, null,
            "The lock is not free, and the claim waits in its queue."),
        new(OutcomeStatus.NotAnInteger, DidNotHappen, RetryRule.Ends, FailedPrecondition, KahunaErrorCode.NotAnInteger,
            "The value is not a decimal integer; nothing was changed."),
        new(OutcomeStatus.Overflow, DidNotHappen, RetryRule.Ends, OutOfRange, KahunaErrorCode.Overflow,
            "The increment leaves the range of a signed 64-bit integer; nothing was changed."),
        new(OutcomeStatus.RevisionCompacted, DidNotHappen, RetryRule.Ends, OutOfRange,
            KahunaErrorCode.RevisionCompacted, "The key's history no longer holds this revision."),
        new(OutcomeStatus.Exhausted, DidNotHappen, RetryRule.Ends, OutOfRange, KahunaErrorCode.SequenceExhausted,
            "The sequence has fewer values left before its bound; none was taken."),
        new(OutcomeStatus.OutOfBounds, DidNotHappen, RetryRule.Ends, FailedPrecondition,
            KahunaErrorCode.InvalidArgument,
            "The change would leave the sequence's latest value outside of its bounds; nothing was changed."),
        new(OutcomeStatus.ModeDiffers, DidNotHappen, RetryRule.Ends, FailedPrecondition,
            KahunaErrorCode.LockModeDiffers,
            "The lock is in use as another kind of lock, or by this owner in another mode; nothing was changed."),
        new(OutcomeStatus.FenceFailed, DidNotHappen, RetryRule.Ends, FailedPrecondition, KahunaErrorCode.LockLost,
            "The fence's token does not hold the lock; nothing was changed."),
        new(OutcomeStatus.ScriptFailed, DidNotHappen, RetryRule.Ends, FailedPrecondition, KahunaErrorCode.ScriptFailed,
            "The script ended with an error; nothing was changed."),

        // Failed.
        new(OutcomeStatus.InvalidArgument, DidNotHappen, RetryRule.Ends, InvalidArgument,
            KahunaErrorCode.InvalidArgument, "The server refused the request as malformed."),
        new(OutcomeStatus.Unimplemented, DidNotHappen, RetryRule.Ends, Unimplemented, KahunaErrorCode.Unimplemented,
            "The server's version does not serve this operation."),
        new(OutcomeStatus.NotLeader, DidNotHappen, RetryRule.AnotherWay, Unavailable, KahunaErrorCode.Unavailable,
            "No leader of the partition is known here; nothing was changed. Try again."),
        new(OutcomeStatus.Busy, DidNotHappen, RetryRule.AfterPause, ResourceExhausted, KahunaErrorCode.Overloaded,
            "The node is overloaded; nothing was changed. Try again later."),
        new(OutcomeStatus.LogFull, DidNotHappen, RetryRule.Ends, ResourceExhausted, KahunaErrorCode.LogFull,
            "The server's log or disk is full; it accepts no writes."),
        new(OutcomeStatus.Expired, DidNotHappen, RetryRule.AfterPause, DeadlineExceeded,
            KahunaErrorCode.DeadlineExceeded, "The operation waited longer than it may; nothing was changed."),
        new(OutcomeStatus.Unavailable, DidNotHappen, RetryRule.AnotherNode, Unavailable, KahunaErrorCode.Unavailable,
            "The node is starting or stopping; nothing was changed. Try another node."),
        new(OutcomeStatus.Unknown, OperationOutcome.Unknown, RetryRule.AnotherWay, Unavailable,
            KahunaErrorCode.OutcomeUnknown,
            "The leader of the partition changed during the operation; whether it was applied is not known."),
        new(OutcomeStatus.Internal, OperationOutcome.Unknown, RetryRule.Ends, Internal, KahunaErrorCode.Internal,
            "The partition stopped on a broken invariant."),
        new(OutcomeStatus.MemoryFull, DidNotHappen, RetryRule.Ends, ResourceExhausted, KahunaErrorCode.MemoryFull,
            "The server's memory for data of this durability is full; delete keys, or let them expire."),
        new(OutcomeStatus.SessionUnknown, OperationOutcome.Unknown, RetryRule.AtOnce, FailedPrecondition,
            KahunaErrorCode.OutcomeUnknown,
            "The partition does not know the session; whether an earlier attempt of this number was applied is not "
                + "known."),
        new(OutcomeStatus.NumberForgotten, OperationOutcome.Unknown, RetryRule.Ends, FailedPrecondition,
            KahunaErrorCode.OutcomeUnknown,
            "The session has confirmed this number, and its outcome is forgotten; this attempt changed nothing."),
        new(OutcomeStatus.NumberReused, DidNotHappen, RetryRule.Ends, InvalidArgument, KahunaErrorCode.InvalidArgument,
            "Another command has this number, or this idempotency key; nothing was changed."),
        new(OutcomeStatus.SessionsFull, DidNotHappen, RetryRule.Ends, ResourceExhausted, KahunaErrorCode.SessionsFull,
            "The partition has its maximum of client sessions; nothing was changed. Try again in a few minutes."),
        new(OutcomeStatus.LockFull, DidNotHappen, RetryRule.Ends, ResourceExhausted, KahunaErrorCode.LockFull,
            "The lock has its maximum of holders and waiters; nothing was changed. Try again when some have left."),
        new(OutcomeStatus.SlotMoved, DidNotHappen, RetryRule.AnotherWay, Unavailable, KahunaErrorCode.Unavailable,
            "The key belongs to another partition by now; nothing was changed. Try again."),
        new(OutcomeStatus.ScanExpired, DidNotHappen, RetryRule.Ends, Aborted, KahunaErrorCode.ScanExpired,
            "The state that the scan reads is no longer kept: the leader changed, the scan took too long, or too much "
                + "of its range was overwritten. Begin the scan again."),
        new(OutcomeStatus.ReplyTooLarge, DidNotHappen, RetryRule.Ends, ResourceExhausted,
            KahunaErrorCode.ReplyTooLarge,
            "The values of the answer would be larger than 4 MiB; nothing was changed. Ask for fewer at once."),
        new(OutcomeStatus.KeyInTransaction, DidNotHappen, RetryRule.AfterPause, Aborted,
            KahunaErrorCode.KeyInTransaction,
            "A transaction that is being committed holds the key; nothing was changed. Try again."),
        new(OutcomeStatus.RangeTooLarge, DidNotHappen, RetryRule.Ends, ResourceExhausted,
            KahunaErrorCode.RangeTooLarge,
            "The ranges that the transaction depends on have too many rows for a transaction, where recently deleted "
                + "keys count too; nothing was written. Use narrower ranges."),
        new(OutcomeStatus.TransactionConflict, DidNotHappen, RetryRule.Ends, Aborted,
            KahunaErrorCode.TransactionConflict,
            "Another transaction holds the key; nothing was changed. Run the transaction again."),
        new(OutcomeStatus.PermissionDenied, DidNotHappen, RetryRule.Ends, PermissionDenied,
            KahunaErrorCode.PermissionDenied, "The user lacks a right that this needs; nothing was changed."),
        new(OutcomeStatus.Unauthenticated, DidNotHappen, RetryRule.Ends, Unauthenticated,
            KahunaErrorCode.Unauthenticated,
            "The credentials are missing, wrong, expired or revoked; nothing was changed."),
        new(OutcomeStatus.QuotaExceeded, DidNotHappen, RetryRule.Ends, ResourceExhausted,
            KahunaErrorCode.QuotaExceeded,
            "The user has reached its quota of keys or bytes; nothing was changed. Delete keys, or ask for more."),
    ]);

    /// <summary>The row of a status; null for an unknown one.</summary>
    public static OutcomeRow? Find(OutcomeStatus status) => s_byStatus[(byte)status];

    /// <summary>What a client does next; an unknown status ends the operation.</summary>
    public static RetryRule RetryOf(OutcomeStatus status) => s_byStatus[(byte)status]?.Retry ?? RetryRule.Ends;

    /// <summary>True when it is unknown whether this attempt changed something.</summary>
    public static bool MayHaveHappened(OutcomeStatus status) =>
        s_byStatus[(byte)status] is not { } row || row.Happened == OperationOutcome.Unknown;

    /// <summary>The status with which a node passes on an error of another node.</summary>
    public static OutcomeStatus Of(KahunaErrorCode error, OperationOutcome happened) => error switch
    {
        KahunaErrorCode.OutcomeUnknown => OutcomeStatus.NumberForgotten,
        KahunaErrorCode.Internal => OutcomeStatus.Internal,
        KahunaErrorCode.NotAnInteger => OutcomeStatus.NotAnInteger,
        KahunaErrorCode.Overflow => OutcomeStatus.Overflow,
        KahunaErrorCode.LockLost when happened == DidNotHappen => OutcomeStatus.FenceFailed,
        _ when happened != DidNotHappen => OutcomeStatus.Unknown,
        _ => Array.Find(s_byStatus, row =>
            row is { Status: >= OutcomeStatus.InvalidArgument and not OutcomeStatus.NotLeader } && row.Error == error)
            ?.Status ?? OutcomeStatus.Unavailable,
    };

    private static OutcomeRow?[] ByStatus(OutcomeRow[] rows)
    {
        OutcomeRow?[] byStatus = new OutcomeRow?[byte.MaxValue + 1];
        foreach (OutcomeRow row in rows)
        {
            ref OutcomeRow? place = ref byStatus[(byte)row.Status];
            place = place is null ? row : throw new InvalidOperationException($"{row.Status} has two rows.");
        }

        return byStatus;
    }
}

/// <summary>The properties of one status. Immutable; see <see cref="OutcomeStatuses"/>.</summary>
/// <param name="Status">The status.</param>
/// <param name="Happened">Whether this attempt changed anything.</param>
/// <param name="Retry">What a client does next.</param>
/// <param name="GrpcCode">The number of its gRPC status code; 0 when a service answers with a normal reply.</param>
/// <param name="Error">The SDK's error code; null for a normal result.</param>
/// <param name="Sentence">Its message, where the server sends none of its own.</param>
internal sealed record OutcomeRow(
    OutcomeStatus Status,
    OperationOutcome Happened,
    RetryRule Retry,
    int GrpcCode,
    KahunaErrorCode? Error,
    string Sentence)
{
    /// <summary>True for outcomes that a service answers with a normal reply.</summary>
    public bool IsNormal => GrpcCode == 0;

    /// <summary>True when the request itself is refused, so that no earlier attempt of it was applied either.</summary>
    public bool RefusesRequest =>
        Status is OutcomeStatus.InvalidArgument or OutcomeStatus.Unimplemented or OutcomeStatus.NumberReused;
}

/// <summary>What a client does after an attempt with a status. Not stored.</summary>
internal enum RetryRule : byte
{
    /// <summary>It ends the operation.</summary>
    Ends,

    /// <summary>It retries after a pause.</summary>
    AfterPause,

    /// <summary>It retries once another route is known, or after a pause.</summary>
    AnotherWay,

    /// <summary>As <see cref="AnotherWay"/>, but the first retry does not wait.</summary>
    AnotherNode,

    /// <summary>The first retry is sent at once, later ones after a pause.</summary>
    AtOnce,
}
