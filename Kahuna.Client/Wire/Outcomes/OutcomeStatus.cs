namespace Kahuna.Wire.Outcomes;

/// <summary>
/// How a command ended; one closed list for all operations. Values are part of the wire format. Below 64 the command
/// was carried out as the operation defines. From 64 on it failed; each row says whether it happened.
/// </summary>
internal enum OutcomeStatus : byte
{
    /// <summary>Never sent.</summary>
    Unset = 0,

    /// <summary>The write took effect. Happened: yes.</summary>
    Applied = 1,

    /// <summary>The read found the key. Safe to retry.</summary>
    Found = 2,

    /// <summary>The key does not exist. A write changed nothing.</summary>
    NotFound = 3,

    /// <summary>A condition did not hold; nothing changed. Revision: the key's current one, 0 when absent.</summary>
    ConditionFailed = 4,

    /// <summary>The value to increment is no integer; nothing changed. gRPC FAILED_PRECONDITION.</summary>
    NotAnInteger = 5,

    /// <summary>The increment leaves the signed 64-bit range; nothing changed. gRPC OUT_OF_RANGE.</summary>
    Overflow = 6,

    /// <summary>History no longer holds the revision. gRPC OUT_OF_RANGE.</summary>
    RevisionCompacted = 7,

    /// <summary>
    /// Fewer values are left within the sequence's bounds; none was taken. The number says how many. gRPC OUT_OF_RANGE.
    /// </summary>
    Exhausted = 8,

    /// <summary>
    /// The change would leave the sequence's latest value outside its bounds, or cross the bounds; nothing changed. The
    /// number is that value. gRPC FAILED_PRECONDITION.
    /// </summary>
    OutOfBounds = 9,

    /// <summary>
    /// The lock is not free; the claim waits in its queue. Revision: its future token. Number: cluster time.
    /// </summary>
    Queued = 10,

    /// <summary>
    /// The lock is in use as another kind (number: its permits, 0 for none), or its owner holds or awaits it in another
    /// mode. Nothing changed. gRPC FAILED_PRECONDITION.
    /// </summary>
    ModeDiffers = 11,

    /// <summary>
    /// The fencing token is not current; nothing changed. Revision: the current token, 0 when nobody holds the lock.
    /// gRPC FAILED_PRECONDITION.
    /// </summary>
    FenceFailed = 12,

    /// <summary>
    /// The script ended with an error; nothing changed. The value is the sentence, with line and column. gRPC
    /// FAILED_PRECONDITION.
    /// </summary>
    ScriptFailed = 13,

    /// <summary>
    /// A field is outside its limits. Did not happen. The value is the sentence. gRPC INVALID_ARGUMENT.
    /// </summary>
    InvalidArgument = 64,

    /// <summary>This version does not serve the operation. Did not happen. gRPC UNIMPLEMENTED.</summary>
    Unimplemented = 65,

    /// <summary>
    /// This node does not lead the partition. Did not happen; retry at the leader, whose node id is the number (0:
    /// unknown). Revision: the version of the node's map of slots, 0 when it knows none. gRPC UNAVAILABLE.
    /// </summary>
    NotLeader = 66,

    /// <summary>The inbox is full. Did not happen; retry later. gRPC RESOURCE_EXHAUSTED.</summary>
    Busy = 67,

    /// <summary>
    /// The log has reached its limit or the disk is nearly full. Did not happen. gRPC RESOURCE_EXHAUSTED.
    /// </summary>
    LogFull = 68,

    /// <summary>
    /// The command waited for too long before anything was done. Did not happen. gRPC DEADLINE_EXCEEDED.
    /// </summary>
    Expired = 69,

    /// <summary>The node is starting or stopping. Did not happen; retry elsewhere. gRPC UNAVAILABLE.</summary>
    Unavailable = 70,

    /// <summary>The command was proposed and its end is unknown here. Happened: unknown. gRPC UNAVAILABLE.</summary>
    Unknown = 71,

    /// <summary>The partition stopped on a broken invariant. Happened: unknown. gRPC INTERNAL.</summary>
    Internal = 72,

    /// <summary>
    /// The node's memory for data of this durability has reached its limit, or the partition is full. Did not happen.
    /// gRPC RESOURCE_EXHAUSTED.
    /// </summary>
    MemoryFull = 73,

    /// <summary>
    /// The partition does not know the session, and the command did not open it. This attempt did not happen; an
    /// earlier one of the same number may have. gRPC FAILED_PRECONDITION.
    /// </summary>
    SessionUnknown = 74,

    /// <summary>
    /// The session has confirmed the number, so its outcome is forgotten. This attempt did not happen; an earlier one
    /// may have. gRPC FAILED_PRECONDITION.
    /// </summary>
    NumberForgotten = 75,

    /// <summary>
    /// Another command has the number, or the idempotency key. Did not happen. gRPC INVALID_ARGUMENT.
    /// </summary>
    NumberReused = 76,

    /// <summary>
    /// The partition remembers its maximum of sessions, and all of them may still be needed. Did not happen. gRPC
    /// RESOURCE_EXHAUSTED.
    /// </summary>
    SessionsFull = 77,

    /// <summary>
    /// The lock has its maximum of claims, held and waiting. Did not happen. gRPC RESOURCE_EXHAUSTED.
    /// </summary>
    LockFull = 78,

    /// <summary>
    /// The key's slot belongs to another partition. Did not happen; retry there. Revision: the version of the first map
    /// that may name it. gRPC UNAVAILABLE.
    /// </summary>
    SlotMoved = 79,

    /// <summary>
    /// The leader does not keep the cut that the request names. Did not happen; begin the scan again. gRPC ABORTED.
    /// </summary>
    ScanExpired = 80,

    /// <summary>
    /// The answer would be larger than it may (number: bytes of its values). Did not happen. gRPC RESOURCE_EXHAUSTED.
    /// </summary>
    ReplyTooLarge = 81,

    /// <summary>
    /// A transaction that is being committed holds the key. Did not happen; retry after a moment. gRPC ABORTED.
    /// </summary>
    KeyInTransaction = 82,

    /// <summary>
    /// The ranges that a transaction depends on have more rows in the partition than it may look at. Did not happen.
    /// gRPC RESOURCE_EXHAUSTED.
    /// </summary>
    RangeTooLarge = 83,

    /// <summary>
    /// An older transaction holds the key, or the time of the hold is over. Did not happen; run the transaction again.
    /// gRPC ABORTED.
    /// </summary>
    TransactionConflict = 84,

    /// <summary>
    /// The user lacks a right that the command needs; the message names it. Did not happen. gRPC PERMISSION_DENIED.
    /// </summary>
    PermissionDenied = 85,

    /// <summary>
    /// The caller did not say who it is, or its credentials are wrong, expired or revoked. Did not happen. gRPC
    /// UNAUTHENTICATED.
    /// </summary>
    Unauthenticated = 86,

    /// <summary>
    /// The user has reached its quota of keys or bytes; the message tells both. Did not happen. gRPC
    /// RESOURCE_EXHAUSTED.
    /// </summary>
    QuotaExceeded = 87,
}
