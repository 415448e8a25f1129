using Kahuna.Client.Locks;

namespace Kahuna.Client.KeyValues;

/// <summary>Options of an increment. Immutable, so one instance may serve many concurrent calls.</summary>
public sealed record IncrementOptions
{
    /// <summary>The durability, which is part of the key's name; null for the client's.</summary>
    public Durability? Durability { get; init; }

    /// <summary>
    /// Increment only while the token's holder has the lock; otherwise the call fails with
    /// <see cref="KahunaErrorCode.LockLost"/>. The lock must have the key's bucket and durability. Null for no fence.
    /// </summary>
    public Fence? Fence { get; init; }
}
