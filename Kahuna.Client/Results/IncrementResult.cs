using Kahuna.Client.Connection;
using Kahuna.Client.Wire.Outcomes;

namespace Kahuna.Client.Results;

/// <summary>The integer after an increment. Immutable.</summary>
public readonly record struct IncrementResult : IOperationResult<IncrementResult>
{
    /// <summary>The integer that the key now holds.</summary>
    public long Value { get; init; }

    /// <summary>The revision of this write.</summary>
    public long Revision { get; init; }

    static IncrementResult IOperationResult<IncrementResult>.From(Operation answered) => answered.ReplyStatus switch
    {
        OutcomeStatus.Applied => new IncrementResult { Value = answered.ReplyNumber, Revision = answered.ReplyRevision },
        OutcomeStatus.NotAnInteger => throw Failures.NotAnInteger(answered),
        OutcomeStatus.Overflow => throw Failures.Overflow(answered),
        OutcomeStatus.FenceFailed => throw Failures.NotHeld(answered),
        _ => throw Failures.UnexpectedStatus(answered),
    };
}
