using Kahuna.Client.Outcomes;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Sequences;

/// <summary>The reply to an operation on a sequence that takes no values. Immutable.</summary>
internal readonly record struct SequenceReply : IOperationResult<SequenceReply>
{
    public OutcomeStatus Status { get; init; }

    /// <summary>Of a page of a list: where the next one begins; 0 at the end.</summary>
    public long Cursor { get; init; }

    public ReadOnlyMemory<byte> Value { get; init; }

    static SequenceReply IOperationResult<SequenceReply>.From(Answer answer) => answer.Status switch
    {
        OutcomeStatus.Applied or OutcomeStatus.Found or OutcomeStatus.NotFound or OutcomeStatus.ConditionFailed =>
            new SequenceReply
            {
                Status = answer.Status,
                Cursor = answer.ReplyNumber,
                Value = answer.Value?.Memory ?? default,
            },
        OutcomeStatus.OutOfBounds => throw OperationErrors.OutOfBounds(answer),
        _ => throw OperationErrors.UnexpectedStatus(answer),
    };
}

/// <summary>
/// The reply to a request for a block: the values, or how many are left if those are fewer. Immutable.
/// </summary>
internal readonly record struct SequenceTake : IOperationResult<SequenceTake>
{
    /// <summary>The values; null when fewer were left, and none was taken.</summary>
    public SequenceRange? Range { get; init; }

    /// <summary>Without a range: the number of values left, 1 or more.</summary>
    public long Left { get; init; }

    static SequenceTake IOperationResult<SequenceTake>.From(Answer answer) =>
        answer is { Status: OutcomeStatus.Exhausted, ReplyNumber: > 0 }
            ? new SequenceTake { Left = answer.ReplyNumber }
            : new SequenceTake { Range = SequenceRange.Of(answer) };
}
