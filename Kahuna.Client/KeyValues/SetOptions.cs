using Kahuna.Client.Connection;
using Kahuna.Client.Locks;
using Kahuna.Client.Results;
using Kahuna.Client.Wire.Commands;

namespace Kahuna.Client.KeyValues;

/// <summary>Conditions and options of a set. Conditions combine with AND. Immutable, so one instance may serve many calls at a time.</summary>
public sealed record SetOptions
{
    /// <summary>Durability level, which is part of the key's name; null takes that of the client's options.</summary>
    public Durability? Durability { get; init; }

    /// <summary>Write only if the key does not exist. Contradicts the other conditions.</summary>
    public bool OnlyIfAbsent { get; init; }

    /// <summary>Write only if the key exists.</summary>
    public bool OnlyIfPresent { get; init; }

    /// <summary>Write only if the key exists and holds exactly this value; <see cref="KahunaValue.Null"/> asks for the null value. Null: no such condition.</summary>
    public KahunaValue? OnlyIfValue { get; init; }

    /// <summary>Write only if the key exists at exactly this revision, 1 or greater. Null: no such condition.</summary>
    public long? OnlyIfRevision { get; init; }

    /// <summary>Time to live, counted by the cluster's clock from the moment of the write; 1 ms to 100 years, fractions of a millisecond are rounded up. Null: the key does not expire.</summary>
    public TimeSpan? Ttl { get; init; }

    /// <summary>Write only while this token's holder has its lock, which is in the same bucket as the key and of the same durability; otherwise the call fails with <see cref="KahunaErrorCode.LockLost"/>. Null: no such demand.</summary>
    public Fence? Fence { get; init; }

    /// <summary>The revision that this write replaces is not kept in the key's history.</summary>
    public bool WithoutHistory { get; init; }

    /// <summary>The result carries the value that was there before.</summary>
    public bool ReturnPrevious { get; init; }

    internal void ApplyTo(Operation operation)
    {
        operation.AddFlag(CommandFlags.IfAbsent, OnlyIfAbsent);
        operation.AddFlag(CommandFlags.IfPresent, OnlyIfPresent);
        operation.AddFlag(CommandFlags.WithoutHistory, WithoutHistory);
        operation.AddFlag(CommandFlags.ReturnPrevious, ReturnPrevious);
        operation.AddComparison(OnlyIfValue, OnlyIfRevision);
        Fence?.ApplyTo(operation);
        if (Ttl is { } ttl)
        {
            operation.AddTtl(ttl);
        }
    }
}
