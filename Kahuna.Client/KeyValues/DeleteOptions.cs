using Kahuna.Client.Connection;
using Kahuna.Client.Locks;
using Kahuna.Wire.Commands;

namespace Kahuna.Client.KeyValues;

/// <summary>
/// Conditions and options of a delete; conditions combine with AND. Immutable, so one instance may serve many
/// concurrent calls.
/// </summary>
public sealed record DeleteOptions
{
    /// <summary>The durability, which is part of the key's name; null for the client's.</summary>
    public Durability? Durability { get; init; }

    /// <summary>
    /// Delete only while the token's holder has the lock; otherwise the call fails with
    /// <see cref="KahunaErrorCode.LockLost"/>. The lock must have the key's bucket and durability. Null for no fence.
    /// </summary>
    public Fence? Fence { get; init; }

    /// <summary>
    /// Delete only if the key holds exactly this value; <see cref="KahunaValue.Null"/> compares with the null value.
    /// Null for no condition.
    /// </summary>
    public KahunaValue? OnlyIfValue { get; init; }

    /// <summary>Delete only if the key is at exactly this revision, 1 or greater. Null for no condition.</summary>
    public Revision? OnlyIfRevision { get; init; }

    /// <summary>Do not keep the deleted revision in the key's history.</summary>
    public bool WithoutHistory { get; init; }

    /// <summary>Return the previous value in the result.</summary>
    public bool ReturnPrevious { get; init; }

    internal void ApplyTo(ref OperationRequest request)
    {
        request.AddFlag(CommandFlags.WithoutHistory, WithoutHistory);
        request.AddFlag(CommandFlags.ReturnPrevious, ReturnPrevious);
        request.AddComparison(OnlyIfValue, OnlyIfRevision);
        Fence?.ApplyTo(ref request);
    }
}
