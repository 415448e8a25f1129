using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Outcomes;

/// <summary>The result of an attempt to increment. Immutable.</summary>
public readonly record struct TryIncrementResult : IOperationResult<TryIncrementResult>
{
    /// <summary>Whether the increment was applied, and if not, why.</summary>
    public IncrementStatus Status { get; init; }

    /// <summary>True when the integer was written.</summary>
    public bool Applied => Status == IncrementStatus.Applied;

    /// <summary>The integer that the key now holds if <see cref="Applied"/>; otherwise 0.</summary>
    public long Value { get; init; }

    /// <summary>The revision of this write if <see cref="Applied"/>; otherwise 0.</summary>
    public Revision Revision { get; init; }

    static TryIncrementResult IOperationResult<TryIncrementResult>.From(Answer answer) => answer.Status switch
    {
        OutcomeStatus.Applied => new TryIncrementResult
        {
            Status = IncrementStatus.Applied,
            Value = answer.ReplyNumber,
            Revision = answer.Revision,
        },
        OutcomeStatus.NotAnInteger => new TryIncrementResult { Status = IncrementStatus.NotAnInteger },
        OutcomeStatus.Overflow => new TryIncrementResult { Status = IncrementStatus.Overflow },
        OutcomeStatus.FenceFailed => throw OperationErrors.NotHeld(answer),
        _ => throw OperationErrors.UnexpectedStatus(answer),
    };
}

/// <summary>How an answered increment ended.</summary>
public enum IncrementStatus
{
    /// <summary>The sum was written.</summary>
    Applied = 0,

    /// <summary>The value is not a decimal integer in ASCII; nothing was changed.</summary>
    NotAnInteger = 1,

    /// <summary>The sum is outside the signed 64-bit range; nothing was changed.</summary>
    Overflow = 2,
}
