using Kahuna.Client.Connection;
using Kahuna.Client.Wire.Outcomes;

namespace Kahuna.Client.Results;

/// <summary>Whether a key exists. As <see cref="GetResult"/> without the value. Immutable.</summary>
public readonly record struct ExistsResult : IOperationResult<ExistsResult>
{
    /// <summary>The key exists (at the revision that was asked for).</summary>
    public bool Found { get; init; }

    /// <summary>The revision that wrote the value, 1 or greater. When not found: the revision that deleted the key, or 0 when nothing is known of it.</summary>
    public long Revision { get; init; }

    /// <summary>How long the key still lives, by the cluster's clock; null when it does not expire.</summary>
    public TimeSpan? RemainingTtl { get; init; }

    static ExistsResult IOperationResult<ExistsResult>.From(Operation answered) => answered.ReplyStatus switch
    {
        OutcomeStatus.Found or OutcomeStatus.NotFound => new ExistsResult
        {
            Found = answered.ReplyStatus == OutcomeStatus.Found,
            Revision = answered.ReplyRevision,
            RemainingTtl = answered.ReplyTtl,
        },
        OutcomeStatus.RevisionCompacted => throw Failures.RevisionCompacted(answered),
        _ => throw Failures.UnexpectedStatus(answered),
    };
}
