using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Outcomes;

/// <summary>The reply to a request to hold a key. Immutable.</summary>
internal readonly record struct HoldReply : IOperationResult<HoldReply>
{
    /// <summary>The request still waits in the key's queue, and keeps its place for a few seconds.</summary>
    public bool IsQueued { get; init; }

    /// <summary>The key as it is while it is held.</summary>
    public GetResult Read { get; init; }

    static HoldReply IOperationResult<HoldReply>.From(Answer answer) => answer.Status switch
    {
        OutcomeStatus.Queued => new HoldReply { IsQueued = true },
        OutcomeStatus.Found or OutcomeStatus.NotFound => new HoldReply
        {
            Read = new GetResult
            {
                Found = answer.Status == OutcomeStatus.Found,
                Value = answer.Value ?? KahunaValue.Null,
                Revision = answer.Revision,
                RemainingTtl = Answer.TtlOf(answer.Status, answer.ReplyNumber),
            },
        },
        _ => throw OperationErrors.UnexpectedStatus(answer),
    };
}

/// <summary>The reply to the release of holds. It says nothing of interest.</summary>
internal readonly record struct ReleaseReply : IOperationResult<ReleaseReply>
{
    static ReleaseReply IOperationResult<ReleaseReply>.From(Answer answer) =>
        answer.Status is OutcomeStatus.Found or OutcomeStatus.NotFound
            ? default
            : throw OperationErrors.UnexpectedStatus(answer);
}
