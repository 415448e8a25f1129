using Kahuna.Client.Locks;

namespace Kahuna.Client.KeyValues;

/// <summary>
/// Conditions and options of an extension; conditions combine with AND. Immutable, so one instance may serve many
/// concurrent calls.
/// </summary>
public sealed record ExtendOptions
{
    /// <summary>The durability, which is part of the key's name; null for the client's.</summary>
    public Durability? Durability { get; init; }

    /// <summary>
    /// Extend only while the token's holder has the lock; otherwise the call fails with
    /// <see cref="KahunaErrorCode.LockLost"/>. The lock must have the key's bucket and durability. Null for no fence.
    /// </summary>
    public Fence? Fence { get; init; }

    /// <summary>
    /// Extend only if the key holds exactly this value; <see cref="KahunaValue.Null"/> compares with the null value.
    /// Null for no condition.
    /// </summary>
    public KahunaValue? OnlyIfValue { get; init; }

    /// <summary>Extend only if the key is at exactly this revision, 1 or greater. Null for no condition.</summary>
    public Revision? OnlyIfRevision { get; init; }
}
