using Kahuna.Client.Connection;
using Kahuna.Client.Locks;
using Kahuna.Wire.Commands;

namespace Kahuna.Client.KeyValues;

/// <summary>
/// Conditions and options of a set; conditions combine with AND. Immutable, so one instance may serve many concurrent
/// calls.
/// </summary>
public sealed record SetOptions
{
    /// <summary>The durability, which is part of the key's name; null for the client's.</summary>
    public Durability? Durability { get; init; }

    /// <summary>Write only if the key does not exist. Cannot be combined with the other conditions.</summary>
    public bool OnlyIfAbsent { get; init; }

    /// <summary>Write only if the key exists.</summary>
    public bool OnlyIfPresent { get; init; }

    /// <summary>
    /// Write only if the key exists and holds exactly this value; <see cref="KahunaValue.Null"/> compares with the null
    /// value. Null for no condition.
    /// </summary>
    public KahunaValue? OnlyIfValue { get; init; }

    /// <summary>Write only if the key exists at exactly this revision, 1 or greater. Null for no condition.</summary>
    public Revision? OnlyIfRevision { get; init; }

    /// <summary>
    /// Time to live, counted by the cluster's clock from the write: 1 ms to 100 years, rounded up to whole
    /// milliseconds. Null: the key does not expire.
    /// </summary>
    public TimeSpan? Ttl { get; init; }

    /// <summary>
    /// Write only while the token's holder has the lock; otherwise the call fails with
    /// <see cref="KahunaErrorCode.LockLost"/>. The lock must have the key's bucket and durability. Null for no fence.
    /// </summary>
    public Fence? Fence { get; init; }

    /// <summary>Do not keep the replaced revision in the key's history.</summary>
    public bool WithoutHistory { get; init; }

    /// <summary>Return the previous value in the result.</summary>
    public bool ReturnPrevious { get; init; }

    internal void ApplyTo(ref OperationRequest request)
    {
        request.AddFlag(CommandFlags.IfAbsent, OnlyIfAbsent);
        request.AddFlag(CommandFlags.IfPresent, OnlyIfPresent);
        request.AddFlag(CommandFlags.WithoutHistory, WithoutHistory);
        request.AddFlag(CommandFlags.ReturnPrevious, ReturnPrevious);
        request.AddComparison(OnlyIfValue, OnlyIfRevision);
        Fence?.ApplyTo(ref request);
        if (Ttl is { } ttl)
        {
            request.AddTtl(ttl);
        }
    }
}
