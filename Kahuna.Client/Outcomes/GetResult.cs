using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Outcomes;

/// <summary>The result of a get. Immutable; the value's bytes belong to the caller.</summary>
public readonly record struct GetResult : IOperationResult<GetResult>, IItemResult<GetResult>
{
    /// <summary>True when the key exists, at the requested revision if there is one.</summary>
    public bool Found { get; init; }

    /// <summary>The value. Check <see cref="Found"/> first: a missing key has the null value too.</summary>
    public KahunaValue Value { get; init; }

    /// <summary>
    /// The revision that wrote the value, 1 or greater. If not found: the revision that deleted the key, or 0 if the
    /// key is unknown.
    /// </summary>
    public Revision Revision { get; init; }

    /// <summary>
    /// The key's remaining time to live by the cluster's clock; null when it does not expire. The key never expires
    /// earlier than this says.
    /// </summary>
    public TimeSpan? RemainingTtl { get; init; }

    /// <summary>
    /// A watch that begins here delivers every change of the key after this read and none before. Null unless
    /// <c>ReadOptions.WithPosition</c> asked for it.
    /// </summary>
    public WatchPosition? Position { get; init; }

    static GetResult IOperationResult<GetResult>.From(Answer answer) => answer.Status switch
    {
        OutcomeStatus.Found or OutcomeStatus.NotFound =>
            Of(answer.Status, answer.Revision, answer.ReplyNumber, answer.Value)
                with
            { Position = answer.Position },
        OutcomeStatus.RevisionCompacted => throw OperationErrors.RevisionCompacted(answer),
        _ => throw OperationErrors.UnexpectedStatus(answer),
    };

    static GetResult IItemResult<GetResult>.Of(
        OutcomeStatus status, Revision revision, long number, KahunaValue? value) =>
        Of(status, revision, number, value);

    private static GetResult Of(OutcomeStatus status, Revision revision, long number, KahunaValue? value) => new()
    {
        Found = status == OutcomeStatus.Found,
        Value = value ?? KahunaValue.Null,
        Revision = revision,
        RemainingTtl = Answer.TtlOf(status, number),
    };
}
