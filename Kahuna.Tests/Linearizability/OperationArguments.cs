
namespace Kahuna.Tests.Linearizability;

/// <summary>
/// What a caller asked for besides kind and key; what the kind has no use for is left alone. Conditions combine with
/// AND. Immutable.
/// </summary>
internal sealed record OperationArguments
{
    public static OperationArguments None { get; } = new();

    /// <summary>Set: the value, which may be null.</summary>
    public string? Value { get; init; }

    public bool OnlyIfAbsent { get; init; }

    public bool OnlyIfPresent { get; init; }

    /// <summary>The key must hold exactly <see cref="ComparedValue"/>.</summary>
    public bool OnlyIfValue { get; init; }

    /// <summary>With <see cref="OnlyIfValue"/>: the value, which may be null.</summary>
    public string? ComparedValue { get; init; }

    public long? OnlyIfRevision { get; init; }

    /// <summary>Set: 1 or greater, null for none. Extend: 0 removes the time to live.</summary>
    public long? TtlMs { get; init; }

    /// <summary>Increment: the amount.</summary>
    public long By { get; init; }

    /// <summary>Next: how many values.</summary>
    public long Count { get; init; }

    /// <summary>Next: the key that names the allocation; null for none.</summary>
    public string? IdempotencyKey { get; init; }

    /// <summary>Next: the value is from a block that the client has taken.</summary>
    public bool IsFast { get; init; }

    /// <summary>Acquire: how the lock is shared.</summary>
    public LockMode Mode { get; init; }

    /// <summary>
    /// Acquire with <see cref="LockMode.Permit"/>: so many may hold the lock at a time; 0 for other modes.
    /// </summary>
    public long Permits { get; init; }

    /// <summary>
    /// Set, delete, extend, increment: the token that had to hold its lock for the write to be applied; null for none.
    /// </summary>
    public LockFence? Fence { get; init; }
}
