using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Outcomes;

/// <summary>The result of an extension of a time to live. Immutable.</summary>
public readonly record struct ExtendResult : IOperationResult<ExtendResult>, IItemResult<ExtendResult>
{
    /// <summary>
    /// True when the key has the new time to live; false when it did not exist or a condition did not hold.
    /// </summary>
    public bool Extended { get; init; }

    /// <summary>
    /// The key existed when the call was applied. If <see cref="Extended"/> is false, a condition did not hold.
    /// </summary>
    public bool Found { get; init; }

    /// <summary>The key's revision, which an extension does not change; 0 when the key does not exist.</summary>
    public Revision Revision { get; init; }

    static ExtendResult IOperationResult<ExtendResult>.From(Answer answer) => answer.Status switch
    {
        OutcomeStatus.Applied or OutcomeStatus.ConditionFailed or OutcomeStatus.NotFound =>
            Of(answer.Status, answer.Revision),
        OutcomeStatus.FenceFailed => throw OperationErrors.NotHeld(answer),
        _ => throw OperationErrors.UnexpectedStatus(answer),
    };

    static ExtendResult IItemResult<ExtendResult>.Of(
        OutcomeStatus status, Revision revision, long number, KahunaValue? value) => Of(status, revision);

    private static ExtendResult Of(OutcomeStatus status, Revision revision) => new()
    {
        Extended = status == OutcomeStatus.Applied,
        Found = status != OutcomeStatus.NotFound,
        Revision = revision,
    };
}
