using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Outcomes;

/// <summary>The result of an increment. Immutable.</summary>
public readonly record struct IncrementResult : IOperationResult<IncrementResult>, IItemResult<IncrementResult>
{
    /// <summary>The integer that the key now holds.</summary>
    public long Value { get; init; }

    /// <summary>The revision of this write.</summary>
    public Revision Revision { get; init; }

    static IncrementResult IOperationResult<IncrementResult>.From(Answer answer) => answer.Status switch
    {
        OutcomeStatus.Applied => new IncrementResult { Value = answer.ReplyNumber, Revision = answer.Revision },
        OutcomeStatus.NotAnInteger => throw OperationErrors.NotAnInteger(answer),
        OutcomeStatus.Overflow => throw OperationErrors.Overflow(answer),
        OutcomeStatus.FenceFailed => throw OperationErrors.NotHeld(answer),
        _ => throw OperationErrors.UnexpectedStatus(answer),
    };

    static IncrementResult IItemResult<IncrementResult>.Of(
        OutcomeStatus status, Revision revision, long number, KahunaValue? value) =>
        new() { Value = number, Revision = revision };
}
