using Kahuna.Client.Connection;
using Kahuna.Client.Wire.Outcomes;

namespace Kahuna.Client.Results;

/// <summary>How an attempt to increment ended. Immutable.</summary>
public readonly record struct TryIncrementResult : IOperationResult<TryIncrementResult>
{
    /// <summary>What happened.</summary>
    public IncrementStatus Status { get; init; }

    /// <summary>True when the integer was written.</summary>
    public bool Applied => Status == IncrementStatus.Applied;

    /// <summary>The integer that the key now holds, if <see cref="Applied"/>; else 0.</summary>
    public long Value { get; init; }

    /// <summary>The revision of this write, if <see cref="Applied"/>; else 0.</summary>
    public long Revision { get; init; }

    static TryIncrementResult IOperationResult<TryIncrementResult>.From(Operation answered) => answered.ReplyStatus switch
    {
        OutcomeStatus.Applied => new TryIncrementResult { Status = IncrementStatus.Applied, Value = answered.ReplyNumber, Revision = answered.ReplyRevision },
        OutcomeStatus.NotAnInteger => new TryIncrementResult { Status = IncrementStatus.NotAnInteger },
        OutcomeStatus.Overflow => new TryIncrementResult { Status = IncrementStatus.Overflow },
        OutcomeStatus.FenceFailed => throw Failures.NotHeld(answered),
        _ => throw Failures.UnexpectedStatus(answered),
    };
}

/// <summary>The ways in which an increment ends when it was answered.</summary>
public enum IncrementStatus
{
    /// <summary>The sum was written.</summary>
    Applied = 0,

    /// <summary>The value is no decimal integer in ASCII; nothing was changed.</summary>
    NotAnInteger = 1,

    /// <summary>The sum is outside the signed 64-bit range; nothing was changed.</summary>
    Overflow = 2,
}
