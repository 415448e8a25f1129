using Kahuna.Client.Locks;
using Kahuna.Client.Results;

namespace Kahuna.Client.KeyValues;

/// <summary>Conditions and options of an extension. Conditions combine with AND. Immutable, so one instance may serve many calls at a time.</summary>
public sealed record ExtendOptions
{
    /// <summary>Durability level, which is part of the key's name; null takes that of the client's options.</summary>
    public Durability? Durability { get; init; }

    /// <summary>Extend only while this token's holder has its lock, which is in the same bucket as the key and of the same durability; otherwise the call fails with <see cref="KahunaErrorCode.LockLost"/>. Null: no such demand.</summary>
    public Fence? Fence { get; init; }

    /// <summary>Extend only if the key holds exactly this value; <see cref="KahunaValue.Null"/> asks for the null value. Null: no such condition.</summary>
    public KahunaValue? OnlyIfValue { get; init; }

    /// <summary>Extend only if the key is at exactly this revision, 1 or greater. Null: no such condition.</summary>
    public long? OnlyIfRevision { get; init; }
}
