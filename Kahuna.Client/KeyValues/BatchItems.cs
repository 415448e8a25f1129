namespace Kahuna.Client.KeyValues;

/// <summary>One item of <see cref="KeyValueClient.SetManyAsync"/>. Immutable.</summary>
/// <param name="Key">The key.</param>
/// <param name="Value">The value.</param>
/// <param name="Options">
/// Conditions and options as of a single set; null for none. A fence is refused in an atomic batch, which has one of
/// its own.
/// </param>
public readonly record struct SetItem(string Key, KahunaValue Value, SetOptions? Options = null);

/// <summary>One item of <see cref="KeyValueClient.DeleteManyAsync"/>. Immutable.</summary>
/// <param name="Key">The key.</param>
/// <param name="Options">Conditions and options as of a single delete; null for none. As for a set.</param>
public readonly record struct DeleteItem(string Key, DeleteOptions? Options = null)
{
    /// <summary>A key without conditions.</summary>
    public static implicit operator DeleteItem(string key) => new(key);
}

/// <summary>Options of a batch. Immutable, so one instance may serve many concurrent calls.</summary>
public sealed record BatchOptions
{
    /// <summary>The durability of items that name none; null for the client's.</summary>
    public Durability? Durability { get; init; }

    /// <summary>
    /// All items take effect at one moment, or none does: when one condition does not hold, nothing is written. At most
    /// 1,000 items and 4 MiB, each key once, in any partitions.
    /// </summary>
    public bool Atomic { get; init; }

    /// <summary>
    /// With <see cref="Atomic"/>: write only while the token's holder has the lock; otherwise the call fails with
    /// <see cref="KahunaErrorCode.LockLost"/>. Which lock it is:
    /// <see cref="Transactions.ConditionalTransaction.WithFence"/>. Null for no fence.
    /// </summary>
    public Locks.Fence? Fence { get; init; }
}

/// <summary>Options of a delete by prefix. Immutable, so one instance may serve many concurrent calls.</summary>
public sealed record DeleteByPrefixOptions
{
    /// <summary>The durability, which is part of the keys' names; null for the client's.</summary>
    public Durability? Durability { get; init; }

    /// <summary>The start of the range, which is part of it; null for no such bound. It need not exist.</summary>
    public string? From { get; init; }

    /// <summary>The end of the range, which is not part of it; null for no such bound. It need not exist.</summary>
    public string? To { get; init; }

    /// <summary>Do not keep the deleted revisions in the keys' history.</summary>
    public bool WithoutHistory { get; init; }

    /// <summary>
    /// Allows an empty prefix without bounds, which stands for every key of the cluster. It is refused without this.
    /// </summary>
    public bool AllKeys { get; init; }
}
