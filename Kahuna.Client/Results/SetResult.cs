using Kahuna.Client.Connection;
using Kahuna.Client.Wire.Outcomes;

namespace Kahuna.Client.Results;

/// <summary>How a set ended. Immutable.</summary>
public readonly record struct SetResult : IOperationResult<SetResult>
{
    /// <summary>True when the value was written; false when a condition did not hold and nothing was changed.</summary>
    public bool Applied { get; init; }

    /// <summary>The key's revision after the call: that of this write if <see cref="Applied"/>, else the current one, or 0 when the key does not exist.</summary>
    public long Revision { get; init; }

    /// <summary>With <c>ReturnPrevious</c>: the value before the call. Null (no value at all, not the null value) when it was not asked for or the key did not exist.</summary>
    public KahunaValue? Previous { get; init; }

    /// <summary>The revision of the value before the call; 0 when the key did not exist.</summary>
    public long PreviousRevision { get; init; }

    static SetResult IOperationResult<SetResult>.From(Operation answered) => answered.ReplyStatus switch
    {
        OutcomeStatus.Applied or OutcomeStatus.ConditionFailed => new SetResult
        {
            Applied = answered.ReplyStatus == OutcomeStatus.Applied,
            Revision = answered.ReplyRevision,
            Previous = answered.ReplyValue,
            PreviousRevision = answered.ReplyNumber,
        },
        OutcomeStatus.FenceFailed => throw Failures.NotHeld(answered),
        _ => throw Failures.UnexpectedStatus(answered),
    };
}
