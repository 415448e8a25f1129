
namespace Kahuna.Tests.Simulation.Workload;

/// <summary>One operation of a caller: what it asked, and what came back. Filled by its caller.</summary>
internal sealed class Call
{
    public required int Process { get; init; }

    public required string Key { get; init; }

    /// <summary>The key is an ephemeral one: another than the persistent one of this name.</summary>
    public bool IsEphemeral { get; init; }

    /// <summary>The key with its durability.</summary>
    public string Name => IsEphemeral ? "ephemeral " + Key : Key;

    public required CallKind Kind { get; init; }

    public required long CallNs { get; init; }

    public string? Value { get; init; }

    public bool OnlyIfAbsent { get; init; }

    public bool OnlyIfPresent { get; init; }

    public string? OnlyIfValue { get; init; }

    /// <summary>The key must hold the null value.</summary>
    public bool OnlyIfNull { get; init; }

    public long? OnlyIfRevision { get; init; }

    /// <summary>A read of what this revision wrote.</summary>
    public long? AtRevision { get; init; }

    /// <summary>The revision that is replaced is not kept.</summary>
    public bool WithoutHistory { get; init; }

    /// <summary>Made by the SDK, which is to tell what was there before.</summary>
    public bool ReturnsPrevious { get; init; }

    /// <summary>
    /// Of an increment: one that tells of an overflow, and of a value that is no number, without an error.
    /// </summary>
    public bool IsTry { get; init; }

    /// <summary>What was there before; 0 when nothing was, or nobody has told.</summary>
    public long PreviousRevision { get; set; }

    /// <inheritdoc cref="PreviousRevision"/>
    public string? PreviousValue { get; set; }

    public long? TtlMs { get; init; }

    public long By { get; init; }

    public long ReturnNs { get; set; }

    public CallOutcome Outcome { get; set; }

    /// <summary>Set, deleted, found or extended.</summary>
    public bool Done { get; set; }

    public string? FoundValue { get; set; }

    public long? Revision { get; set; }

    public long? Number { get; set; }

    /// <summary>The idempotency key of an allocation.</summary>
    public string? SequenceKey { get; init; }

    /// <summary>A value of a block that its client has taken.</summary>
    public bool IsFast { get; init; }

    /// <summary>The greatest value of the sequence.</summary>
    public long Bound { get; init; } = long.MaxValue;

    /// <summary>The values that were taken.</summary>
    public long First { get; set; }

    /// <inheritdoc cref="First"/>
    public long Last { get; set; }

    /// <summary>How a lock is wanted.</summary>
    public LockMode Mode { get; init; }

    /// <summary>
    /// The caller has a name of its own as the owner of locks, so that a grant may be one that it had forgotten.
    /// </summary>
    public bool IsNamed { get; init; }

    /// <summary>Made under an idempotency key.</summary>
    public bool IsKeyed { get; set; }

    /// <summary>One of an atomic batch; all of them were made by one process at the same moment.</summary>
    public bool IsAtomic { get; init; }

    /// <summary>Made by a unary call.</summary>
    public bool IsUnary { get; init; }

    /// <summary>Permits of a semaphore.</summary>
    public int Permits { get; init; }

    /// <summary>The token of a lock that was granted, or that a write carries.</summary>
    public long Token { get; set; }

    /// <summary>The lock whose token a write carries.</summary>
    public string? Fence { get; init; }

    /// <summary>The moment from which the caller did not believe any more that it had the lock.</summary>
    public long UntilNs { get; set; } = long.MaxValue;

    /// <summary>Name of the error, when there was one.</summary>
    public string? Error { get; set; }
}

internal enum CallKind
{
    Set,
    Get,
    Exists,
    Delete,
    Extend,
    Increment,

    /// <summary>Takes <see cref="Call.By"/> values of a sequence.</summary>
    Next,

    /// <summary>Asks for a lock, and holds it for a while.</summary>
    Acquire,
}

internal enum CallOutcome
{
    /// <summary>It has not come back.</summary>
    Open,

    Ok,

    /// <summary>It surely did not happen.</summary>
    Fail,

    Unknown,
}
