using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Outcomes;

/// <summary>
/// The reply to a command that has items: the bytes of an <see cref="OutcomeList"/>. Immutable.
/// </summary>
internal readonly record struct TransactionReply : IOperationResult<TransactionReply>
{
    /// <summary>All conditions held.</summary>
    public bool Holds { get; init; }

    /// <summary>The outcomes of the conditions, then those of the operations that were carried out.</summary>
    public ReadOnlyMemory<byte> Outcomes { get; init; }

    static TransactionReply IOperationResult<TransactionReply>.From(Answer answer) => answer.Status switch
    {
        OutcomeStatus.Applied or OutcomeStatus.Found or OutcomeStatus.ConditionFailed
            when answer.Value is { } outcomes =>
            new TransactionReply
            {
                Holds = answer.Status != OutcomeStatus.ConditionFailed,
                Outcomes = outcomes.Memory,
            },
        OutcomeStatus.NotAnInteger or OutcomeStatus.Overflow => throw OperationErrors.NoSum(answer),
        OutcomeStatus.FenceFailed => throw OperationErrors.NotHeld(answer),
        _ => throw OperationErrors.UnexpectedStatus(answer),
    };
}

/// <summary>The reply to one step of a delete by prefix: the bytes of a <see cref="RangePage"/>. Immutable.</summary>
internal readonly record struct RangeDeleteReply : IOperationResult<RangeDeleteReply>
{
    /// <summary>Keys that the step deleted.</summary>
    public long Deleted { get; init; }

    /// <summary>The key behind which the next step begins; null: there is none.</summary>
    public byte[]? Last { get; init; }

    static RangeDeleteReply IOperationResult<RangeDeleteReply>.From(Answer answer) => answer switch
    {
        { Status: OutcomeStatus.Applied, Value: { } bytes }
            when RangePage.TryRead(bytes.Memory.Span, out RangePage page) =>
            new RangeDeleteReply
            {
                Deleted = answer.ReplyNumber,
                Last = page.HasMore ? page.Last.ToArray() : null,
            },
        _ => throw OperationErrors.UnexpectedStatus(answer),
    };
}
