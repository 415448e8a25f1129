using Kahuna.Client.Connection;
using Kahuna.Client.Locks;
using Kahuna.Client.Results;
using Kahuna.Client.Wire.Commands;

namespace Kahuna.Client.KeyValues;

/// <summary>Conditions and options of a delete. Conditions combine with AND. Immutable, so one instance may serve many calls at a time.</summary>
public sealed record DeleteOptions
{
    /// <summary>Durability level, which is part of the key's name; null takes that of the client's options.</summary>
    public Durability? Durability { get; init; }

    /// <summary>Delete only while this token's holder has its lock, which is in the same bucket as the key and of the same durability; otherwise the call fails with <see cref="KahunaErrorCode.LockLost"/>. Null: no such demand.</summary>
    public Fence? Fence { get; init; }

    /// <summary>Delete only if the key holds exactly this value; <see cref="KahunaValue.Null"/> asks for the null value. Null: no such condition.</summary>
    public KahunaValue? OnlyIfValue { get; init; }

    /// <summary>Delete only if the key is at exactly this revision, 1 or greater. Null: no such condition.</summary>
    public long? OnlyIfRevision { get; init; }

    /// <summary>The revision that is deleted is not kept in the key's history.</summary>
    public bool WithoutHistory { get; init; }

    /// <summary>The result carries the value that was there before.</summary>
    public bool ReturnPrevious { get; init; }

    internal void ApplyTo(Operation operation)
    {
        operation.AddFlag(CommandFlags.WithoutHistory, WithoutHistory);
        operation.AddFlag(CommandFlags.ReturnPrevious, ReturnPrevious);
        operation.AddComparison(OnlyIfValue, OnlyIfRevision);
        Fence?.ApplyTo(operation);
    }
}
