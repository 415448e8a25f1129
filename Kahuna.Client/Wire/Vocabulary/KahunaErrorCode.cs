namespace Kahuna;

/// <summary>
/// Why an operation failed. Together with <c>KahunaException.Outcome</c> it says what a caller can do about it. Where a
/// code says "did not happen", it means this attempt: if an earlier attempt of the same call was sent and not answered,
/// <c>KahunaException.Outcome</c> is <see cref="OperationOutcome.Unknown"/>.
/// </summary>
public enum KahunaErrorCode
{
    /// <summary>No further classification. Not used by this version.</summary>
    Unspecified = 0,

    /// <summary>
    /// A field is outside its limits; the message names field, limit and value. Did not happen. Repeating the call
    /// fails again.
    /// </summary>
    InvalidArgument = 1,

    /// <summary>The server's version does not serve the operation or the durability level. Did not happen.</summary>
    Unimplemented = 2,

    /// <summary>No node could be reached, or no leader was known, until the deadline. Did not happen.</summary>
    Unavailable = 3,

    /// <summary>The leader's inbox was full until the deadline. Did not happen; slow down.</summary>
    Overloaded = 4,

    /// <summary>
    /// The server's log has reached its limit or its disk is nearly full; reads still work. Did not happen.
    /// </summary>
    LogFull = 5,

    /// <summary>
    /// The request timeout passed first. <c>KahunaException.Outcome</c> says whether a change is possible.
    /// </summary>
    DeadlineExceeded = 6,

    /// <summary>
    /// The connection was lost after a mutation had been sent, and no later attempt was answered before the request
    /// timeout. Outcome unknown.
    /// </summary>
    ConnectionLost = 7,

    /// <summary>
    /// Nobody can tell whether an earlier attempt was applied. Outcome unknown. Only after an ephemeral partition lost
    /// its data, or after the client was paused for a long time, because the cluster has forgotten the client's session
    /// then; and for the commit of a pessimistic transaction, when no answer came and another one held its keys when it
    /// was sent again.
    /// </summary>
    OutcomeUnknown = 8,

    /// <summary>The server found a broken invariant and stopped the partition. Outcome unknown.</summary>
    Internal = 9,

    /// <summary>The value to increment is not a decimal integer. Did not happen.</summary>
    NotAnInteger = 10,

    /// <summary>The increment would leave the signed 64-bit range. Did not happen.</summary>
    Overflow = 11,

    /// <summary>The key's history no longer holds the requested revision. Nothing was changed.</summary>
    RevisionCompacted = 12,

    /// <summary>
    /// The client was disposed during the operation. <c>KahunaException.Outcome</c> says whether a change is possible.
    /// </summary>
    ClientDisposed = 13,

    /// <summary>
    /// The peer does not speak this client's wire version, or sent bytes that the wire format does not allow.
    /// </summary>
    Protocol = 14,

    /// <summary>
    /// The server's memory for data of the call's durability has reached its limit, or the partition is full. Sets,
    /// increments, values of sequences and acquires of that durability are refused; everything else still works. Did
    /// not happen.
    /// </summary>
    MemoryFull = 15,

    /// <summary>
    /// The partition already remembers its maximum of client sessions, and all of them may still be needed. Did not
    /// happen. Try again in a few minutes, and share one client within a process.
    /// </summary>
    SessionsFull = 16,

    /// <summary>There is no sequence of this name. Did not happen.</summary>
    SequenceNotFound = 17,

    /// <summary>Fewer values remain than were requested, and the sequence does not cycle. Did not happen.</summary>
    SequenceExhausted = 18,

    /// <summary>The lock did not become free within the caller's wait. Did not happen.</summary>
    LockBusy = 19,

    /// <summary>
    /// The fencing token of a write is no longer current, or a lease ended before its grant could be used. Did not
    /// happen; acquire the lock again.
    /// </summary>
    LockLost = 20,

    /// <summary>
    /// The name is in use as another kind of lock: as a semaphore, with another number of permits, or by the same owner
    /// in another mode. Or the caller holds the lock shared and asks for it exclusively. Did not happen.
    /// </summary>
    LockModeDiffers = 21,

    /// <summary>
    /// No server certificate is trusted. The message names the certificate and the option that decides,
    /// <c>KahunaClientOptions.TrustedCaFile</c>. Fails at once. Did not happen.
    /// </summary>
    Untrusted = 22,

    /// <summary>
    /// The lock has its maximum of holders and waiters: 131,072. Did not happen; try again when some have left.
    /// </summary>
    LockFull = 23,

    /// <summary>
    /// The moment that a consistent scan shows is no longer kept: a leader changed, the scan took too long, or too much
    /// of its range was overwritten. Did not happen; begin the scan again.
    /// </summary>
    ScanExpired = 24,

    /// <summary>
    /// The values that an atomic batch or a transaction returns are larger than 4 MiB together. Did not happen; ask for
    /// fewer at once.
    /// </summary>
    ReplyTooLarge = 25,

    /// <summary>
    /// Something that a transaction had read was changed by others before its commit. Did not happen; run the
    /// transaction again from its beginning.
    /// </summary>
    TransactionConflict = 26,

    /// <summary>
    /// The transaction was committed or rolled back before this call, or its timeout has passed. The call did nothing.
    /// </summary>
    TransactionEnded = 27,

    /// <summary>
    /// The script ended with an error: it threw one, a value had the wrong type, or it exceeded a budget. The message
    /// names line and column. Did not happen: nothing of it was written.
    /// </summary>
    ScriptFailed = 28,

    /// <summary>
    /// A transaction that is being committed holds the key, and did so for as long as the operation may take. Did not
    /// happen; try again.
    /// </summary>
    KeyInTransaction = 29,

    /// <summary>
    /// The ranges that a transaction depends on have too many rows in one partition; keys that were deleted recently
    /// count too. Did not happen; use narrower ranges.
    /// </summary>
    RangeTooLarge = 30,

    /// <summary>
    /// The user lacks a right that the call needs; the message names the right, and the key, name or range as the
    /// caller gave it. Did not happen. Repeating the call fails again until an administrator grants the right.
    /// </summary>
    PermissionDenied = 31,

    /// <summary>
    /// The cluster requires credentials, and the client's are missing, wrong, expired or revoked. Did not happen.
    /// Repeating the call fails again until <c>KahunaClientOptions.Credentials</c> are accepted; a token with a renewal
    /// callback has been renewed once before this error.
    /// </summary>
    Unauthenticated = 32,

    /// <summary>Administration: there is no such user, role or token. Did not happen.</summary>
    NotFound = 33,

    /// <summary>Administration: the name of the user or of a certificate is taken. Did not happen.</summary>
    AlreadyExists = 34,

    /// <summary>
    /// Administration: the change would leave no administrator, the role is in use or built in, or the cluster runs
    /// without authentication. Did not happen.
    /// </summary>
    FailedPrecondition = 35,

    /// <summary>
    /// Administration: other changes of users, roles and tokens came first, several times. Did not happen; try again.
    /// </summary>
    ChangeConflict = 36,

    /// <summary>
    /// Administration: there are as many users, roles or tokens as there may be, or the node takes no more of these
    /// calls now. Did not happen.
    /// </summary>
    LimitReached = 37,

    /// <summary>
    /// The user has reached its quota of keys or bytes; the message tells the limit and what the user has. Did not
    /// happen. Deletes and reads go on; other writes fail until there is room, or an administrator raises the quota.
    /// </summary>
    QuotaExceeded = 38,
}
