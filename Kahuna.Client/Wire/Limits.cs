namespace Kahuna.Wire;

/// <summary>The limits of the wire and of the data model, each with its reason. Constants only; any thread.</summary>
internal static class Limits
{
    /// <summary>Longest name in bytes of UTF-8 (docs/guarantees.md).</summary>
    public const int KeyBytesMax = 1024;

    /// <summary>Keys on one page of a range.</summary>
    public const int RangeKeysMax = 10_000;

    /// <summary>Items of one batch that is not atomic.</summary>
    public const int BatchItemsMax = 10_000;

    /// <summary>
    /// Operations of one transaction, and as many conditions: about a millisecond of work that nobody interrupts.
    /// </summary>
    public const int TransactionItemsMax = 1_000;

    /// <summary>Conditions of one transaction that are about ranges of keys.</summary>
    public const int TransactionRangesMax = 64;

    /// <summary>Bytes of the items of one transaction, and of the values that its answer carries.</summary>
    public const int TransactionBytesMax = 4 << 20;

    /// <summary>
    /// The partitions of a transaction, each once per durability: as many as its keys can lie in at the most.
    /// </summary>
    public const int ParticipantsMax = 2 * TransactionItemsMax;

    /// <summary>
    /// The decisions that one command forgets: a tenth of a millisecond of work, so that no other command waits long.
    /// </summary>
    public const int ForgottenTransactionsMax = 256;

    /// <summary>The shortest time, in ms, after which a partition may have a prepared transaction aborted.</summary>
    public const int PrepareMsMin = 100;

    /// <summary>The longest such time, in ms.</summary>
    public const int PrepareMsMax = 10_000;

    /// <summary>
    /// The longest time, in ms, for which a pessimistic transaction holds keys: a client that has gone blocks others no
    /// longer.
    /// </summary>
    public const int TransactionHoldMsMax = 60_000;

    /// <summary>The shortest such time, in ms.</summary>
    public const int TransactionHoldMsMin = 100;

    /// <summary>Largest value by default.</summary>
    public const int ValueBytesDefault = 1 << 20;

    /// <summary>Largest value that a server may be configured to accept.</summary>
    public const int ValueBytesCeiling = 16 << 20;

    /// <summary>100 years: far above any use, far below overflow when added to a timestamp.</summary>
    public const long TtlMsMax = 100L * 365 * 24 * 3600 * 1000;

    /// <summary>The prefix of names that are reserved for the system.</summary>
    public static ReadOnlySpan<byte> ReservedPrefix => "__kahuna"u8;

    /// <summary>
    /// Version of the frame, command and outcome layouts; both sides state it in the stream's handshake.
    /// </summary>
    public const int WireVersion = 3;

    /// <summary>
    /// A writer closes a frame at this size: large enough that headers do not matter, small enough not to delay the
    /// next frame.
    /// </summary>
    public const int FrameBytesTarget = 256 * 1024;

    /// <summary>
    /// Largest frame that a reader accepts: the target plus one command that carries the largest value twice (value and
    /// compared value).
    /// </summary>
    public const int FrameBytesMax = FrameBytesTarget + (2 * ValueBytesCeiling) + (64 * 1024);

    /// <summary>
    /// The most operations in flight on one stream; further ones wait in the client. A frame with more is malformed,
    /// which bounds the work and the refusals per frame.
    /// </summary>
    public const int InFlightPerStreamMax = 16 * 1024;

    /// <summary>
    /// Longest life of a command from the call to the last attempt, and so the longest wait of an attempt before the
    /// log: five minutes. Sessions are remembered for longer.
    /// </summary>
    public const int CommandWaitMsMax = 300_000;

    /// <summary>Longest name of a lock's owner in bytes of UTF-8.</summary>
    public const int OwnerBytesMax = 256;

    /// <summary>Longest note of a lock's owner, in bytes.</summary>
    public const int NoteBytesMax = 1024;

    /// <summary>
    /// Longest lease, an hour; a longer hold needs renewals. It bounds how long an ephemeral group that lost its data
    /// grants no locks.
    /// </summary>
    public const long LeaseMsMax = 3_600_000;

    /// <summary>Longest wait for a lock: a day.</summary>
    public const long LockWaitMsMax = 86_400_000;

    /// <summary>The most permits of a semaphore.</summary>
    public const int PermitsMax = 10_000;

    /// <summary>
    /// The most claims of one lock, held and waiting together: more than the processes that share one, and some 45 MB
    /// of state.
    /// </summary>
    public const int ClaimsPerLockMax = 131_072;

    /// <summary>The longest hold of a long poll.</summary>
    public const int LockHoldMsMax = 30_000;

    /// <summary>The most unanswered numbers of one session: the width of its window.</summary>
    public const int SessionWindow = 4096;
}
