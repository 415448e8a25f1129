using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Outcomes;

/// <summary>The result of a delete. Immutable.</summary>
public readonly record struct DeleteResult : IOperationResult<DeleteResult>, IItemResult<DeleteResult>
{
    /// <summary>True when the key was removed; false when it did not exist or a condition did not hold.</summary>
    public bool Deleted { get; init; }

    /// <summary>
    /// The key existed when the call was applied. If <see cref="Deleted"/> is false, a condition did not hold.
    /// </summary>
    public bool Found { get; init; }

    /// <summary>
    /// The revision of the deletion if <see cref="Deleted"/>; otherwise the current one, or 0 when the key does not
    /// exist.
    /// </summary>
    public Revision Revision { get; init; }

    /// <summary>
    /// With <c>ReturnPrevious</c>: the value before the call. Null if it was not requested or the key did not exist.
    /// </summary>
    public KahunaValue? Previous { get; init; }

    /// <summary>The revision of the value before the call; 0 if the key did not exist.</summary>
    public Revision PreviousRevision { get; init; }

    static DeleteResult IOperationResult<DeleteResult>.From(Answer answer) => answer.Status switch
    {
        OutcomeStatus.Applied or OutcomeStatus.ConditionFailed or OutcomeStatus.NotFound =>
            Of(answer.Status, answer.Revision, answer.ReplyNumber, answer.Value),
        OutcomeStatus.FenceFailed => throw OperationErrors.NotHeld(answer),
        _ => throw OperationErrors.UnexpectedStatus(answer),
    };

    static DeleteResult IItemResult<DeleteResult>.Of(
        OutcomeStatus status, Revision revision, long number, KahunaValue? value) =>
        Of(status, revision, number, value);

    private static DeleteResult Of(OutcomeStatus status, Revision revision, long number, KahunaValue? value) => new()
    {
        Deleted = status == OutcomeStatus.Applied,
        Found = status != OutcomeStatus.NotFound,
        Revision = revision,
        Previous = value,
        PreviousRevision = new Revision(number),
    };
}
