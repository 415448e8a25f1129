using Kahuna.Client.Outcomes;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Coordination;

/// <summary>The reply to a <see cref="CommandKind.TransactionPrepare"/>. Immutable.</summary>
internal readonly record struct PrepareReply : IOperationResult<PrepareReply>
{
    public bool IsPrepared { get; init; }

    /// <summary>Why it is not.</summary>
    public PrepareRefusal Refusal { get; init; }

    public PrepareVote Vote { get; init; }

    /// <summary>The outcomes of the part's conditions.</summary>
    public ReadOnlyMemory<byte> Conditions { get; init; }

    static PrepareReply IOperationResult<PrepareReply>.From(Answer answer)
    {
        ReadOnlyMemory<byte> value = answer.Value?.Memory ?? default;
        bool hasVote = PrepareVote.TryRead(value.Span, out PrepareVote vote, out ReadOnlySpan<byte> conditions);
        return answer.Status switch
        {
            OutcomeStatus.Applied when hasVote => new PrepareReply
            {
                IsPrepared = true,
                Vote = vote,
                Conditions = value[^conditions.Length..],
            },
            OutcomeStatus.ConditionFailed => new PrepareReply
            {
                Refusal = (PrepareRefusal)answer.ReplyNumber,
                Vote = vote,
                Conditions = value[^conditions.Length..],
            },
            _ => throw OperationErrors.UnexpectedStatus(answer),
        };
    }
}

/// <summary>The reply to a <see cref="CommandKind.TransactionDecide"/>. Immutable.</summary>
internal readonly record struct DecideReply : IOperationResult<DecideReply>
{
    /// <summary>The decision that counts.</summary>
    public TransactionDecision Decision { get; init; }

    /// <summary>
    /// The outcomes of the anchor's list; null when this command did not decide, or the anchor has no items.
    /// </summary>
    public ReadOnlyMemory<byte>? Outcomes { get; init; }

    static DecideReply IOperationResult<DecideReply>.From(Answer answer) => answer.Status switch
    {
        OutcomeStatus.Applied => new DecideReply
        {
            Decision = (TransactionDecision)answer.ReplyNumber,
            Outcomes = answer.Value?.Memory,
        },
        OutcomeStatus.FenceFailed => throw OperationErrors.NotHeld(answer),
        _ => throw OperationErrors.UnexpectedStatus(answer),
    };
}

/// <summary>The reply to a <see cref="CommandKind.TransactionFinish"/>. Immutable.</summary>
internal readonly record struct FinishReply : IOperationResult<FinishReply>
{
    /// <summary>The outcomes of the list that was carried out; null when nothing was prepared there.</summary>
    public ReadOnlyMemory<byte>? Outcomes { get; init; }

    static FinishReply IOperationResult<FinishReply>.From(Answer answer) => answer.Status switch
    {
        OutcomeStatus.Applied => new FinishReply { Outcomes = answer.Value?.Memory ?? ReadOnlyMemory<byte>.Empty },
        OutcomeStatus.NotFound => default,
        _ => throw OperationErrors.UnexpectedStatus(answer),
    };
}

/// <summary>The reply to a <see cref="CommandKind.TransactionForget"/>. Immutable.</summary>
internal readonly record struct ForgetReply : IOperationResult<ForgetReply>
{
    static ForgetReply IOperationResult<ForgetReply>.From(Answer answer) => default;
}
