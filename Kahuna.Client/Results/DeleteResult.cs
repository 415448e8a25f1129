using Kahuna.Client.Connection;
using Kahuna.Client.Wire.Outcomes;

namespace Kahuna.Client.Results;

/// <summary>How a delete ended. Immutable.</summary>
public readonly record struct DeleteResult : IOperationResult<DeleteResult>
{
    /// <summary>True when the key was removed; false when it did not exist or a condition did not hold.</summary>
    public bool Deleted { get; init; }

    /// <summary>The key existed when the call was applied. With <see cref="Deleted"/> false it means that a condition did not hold.</summary>
    public bool Found { get; init; }

    /// <summary>The revision of the deletion if <see cref="Deleted"/>, else the current one, or 0 when the key does not exist.</summary>
    public long Revision { get; init; }

    /// <summary>With <c>ReturnPrevious</c>: the value before the call. Null when it was not asked for or the key did not exist.</summary>
    public KahunaValue? Previous { get; init; }

    /// <summary>The revision of the value before the call; 0 when the key did not exist.</summary>
    public long PreviousRevision { get; init; }

    static DeleteResult IOperationResult<DeleteResult>.From(Operation answered) => answered.ReplyStatus switch
    {
        OutcomeStatus.Applied or OutcomeStatus.ConditionFailed or OutcomeStatus.NotFound => new DeleteResult
        {
            Deleted = answered.ReplyStatus == OutcomeStatus.Applied,
            Found = answered.ReplyStatus != OutcomeStatus.NotFound,
            Revision = answered.ReplyRevision,
            Previous = answered.ReplyValue,
            PreviousRevision = answered.ReplyNumber,
        },
        OutcomeStatus.FenceFailed => throw Failures.NotHeld(answered),
        _ => throw Failures.UnexpectedStatus(answered),
    };
}
