using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Outcomes;

/// <summary>The reply to opening, confirming or ending a cut. Immutable.</summary>
internal readonly record struct CutReply : IOperationResult<CutReply>
{
    /// <summary>Of an opening: the number of the cut.</summary>
    public long Number { get; init; }

    /// <summary>Of an opening: the leader did not hold its proposals, and will not for this many ms.</summary>
    public long RestMs { get; init; }

    /// <summary>Of a confirmation: the range is still as it was when the cut was opened.</summary>
    public bool IsCurrent { get; init; }

    static CutReply IOperationResult<CutReply>.From(Answer answer) => answer.Status switch
    {
        OutcomeStatus.Found =>
            new CutReply { Number = answer.ReplyNumber, RestMs = answer.Revision.Value, IsCurrent = true },
        OutcomeStatus.ConditionFailed => default,
        _ => throw OperationErrors.UnexpectedStatus(answer),
    };
}
