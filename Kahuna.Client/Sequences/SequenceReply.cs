using Kahuna.Client.Connection;
using Kahuna.Client.Results;
using Kahuna.Client.Wire.Outcomes;

namespace Kahuna.Client.Sequences;

/// <summary>What came back from an operation on a sequence that takes no values. Immutable.</summary>
internal readonly record struct SequenceReply : IOperationResult<SequenceReply>
{
    public OutcomeStatus Status { get; init; }

    public long Number { get; init; }

    public ReadOnlyMemory<byte> Value { get; init; }

    static SequenceReply IOperationResult<SequenceReply>.From(Operation answered) => answered.ReplyStatus switch
    {
        OutcomeStatus.Applied or OutcomeStatus.Found or OutcomeStatus.NotFound or OutcomeStatus.ConditionFailed => new SequenceReply
        {
            Status = answered.ReplyStatus,
            Number = answered.ReplyNumber,
            Value = answered.ReplyValue?.Memory ?? default,
        },
        OutcomeStatus.OutOfBounds => throw Failures.OutOfBounds(answered),
        _ => throw Failures.UnexpectedStatus(answered),
    };
}
