using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Outcomes;

/// <summary>The result of a set. Immutable.</summary>
public readonly record struct SetResult : IOperationResult<SetResult>
{
    /// <summary>True when the value was written; false when a condition did not hold and nothing was changed.</summary>
    public bool Applied { get; init; }

    /// <summary>
    /// The key's revision after the call: that of this write if <see cref="Applied"/>; otherwise the current one, or 0
    /// when the key does not exist.
    /// </summary>
    public Revision Revision { get; init; }

    /// <summary>
    /// With <c>ReturnPrevious</c>: the value before the call. Null, which differs from the null value, if it was not
    /// requested or the key did not exist.
    /// </summary>
    public KahunaValue? Previous { get; init; }

    /// <summary>The revision of the value before the call; 0 if the key did not exist.</summary>
    public Revision PreviousRevision { get; init; }

    static SetResult IOperationResult<SetResult>.From(Answer answer) => answer.Status switch
    {
        OutcomeStatus.Applied or OutcomeStatus.ConditionFailed => new SetResult
        {
            Applied = answer.Status == OutcomeStatus.Applied,
            Revision = answer.Revision,
            Previous = answer.Value,
            PreviousRevision = new Revision(answer.ReplyNumber),
        },
        OutcomeStatus.FenceFailed => throw OperationErrors.NotHeld(answer),
        _ => throw OperationErrors.UnexpectedStatus(answer),
    };
}
