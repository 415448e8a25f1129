using Kahuna.Client.Locks;

namespace Kahuna.Client.KeyValues;

/// <summary>Options of an increment. Immutable, so one instance may serve many calls at a time.</summary>
public sealed record IncrementOptions
{
    /// <summary>Durability level, which is part of the key's name; null takes that of the client's options.</summary>
    public Durability? Durability { get; init; }

    /// <summary>Increment only while this token's holder has its lock, which is in the same bucket as the key and of the same durability; otherwise the call fails with <see cref="KahunaErrorCode.LockLost"/>. Null: no such demand.</summary>
    public Fence? Fence { get; init; }
}
