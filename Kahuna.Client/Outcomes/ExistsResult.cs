using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Outcomes;

/// <summary>The result of an exists: a <see cref="GetResult"/> without the value. Immutable.</summary>
public readonly record struct ExistsResult : IOperationResult<ExistsResult>, IItemResult<ExistsResult>
{
    /// <summary>True when the key exists, at the requested revision if there is one.</summary>
    public bool Found { get; init; }

    /// <summary>
    /// The revision that wrote the value, 1 or greater. If not found: the revision that deleted the key, or 0 if the
    /// key is unknown.
    /// </summary>
    public Revision Revision { get; init; }

    /// <summary>The key's remaining time to live by the cluster's clock; null when it does not expire.</summary>
    public TimeSpan? RemainingTtl { get; init; }

    /// <summary>
    /// A watch that begins here delivers every change of the key after this read and none before. Null unless
    /// <c>ReadOptions.WithPosition</c> asked for it.
    /// </summary>
    public WatchPosition? Position { get; init; }

    static ExistsResult IOperationResult<ExistsResult>.From(Answer answer) => answer.Status switch
    {
        OutcomeStatus.Found or OutcomeStatus.NotFound =>
            Of(answer.Status, answer.Revision, answer.ReplyNumber)
                with
            { Position = answer.Position },
        OutcomeStatus.RevisionCompacted => throw OperationErrors.RevisionCompacted(answer),
        _ => throw OperationErrors.UnexpectedStatus(answer),
    };

    static ExistsResult IItemResult<ExistsResult>.Of(
        OutcomeStatus status, Revision revision, long number, KahunaValue? value) => Of(status, revision, number);

    private static ExistsResult Of(OutcomeStatus status, Revision revision, long number) => new()
    {
        Found = status == OutcomeStatus.Found,
        Revision = revision,
        RemainingTtl = Answer.TtlOf(status, number),
    };
}
