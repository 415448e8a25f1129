using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Outcomes;

/// <summary>The result of a set. Immutable.</summary>
public readonly record struct SetResult : IOperationResult<SetResult>, IItemResult<SetResult>
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
        OutcomeStatus.Applied or OutcomeStatus.ConditionFailed =>
            Of(answer.Status, answer.Revision, answer.ReplyNumber, answer.Value),
        OutcomeStatus.FenceFailed => throw OperationErrors.NotHeld(answer),
        _ => throw OperationErrors.UnexpectedStatus(answer),
    };

    static SetResult IItemResult<SetResult>.Of(
        OutcomeStatus status, Revision revision, long number, KahunaValue? value) =>
        Of(status, revision, number, value);

    private static SetResult Of(OutcomeStatus status, Revision revision, long number, KahunaValue? value) => new()
    {
        Applied = status == OutcomeStatus.Applied,
        Revision = revision,
        Previous = value,
        PreviousRevision = new Revision(number),
    };
}
