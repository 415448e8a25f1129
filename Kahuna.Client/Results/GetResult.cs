using Kahuna.Client.Connection;
using Kahuna.Client.Wire.Outcomes;

namespace Kahuna.Client.Results;

/// <summary>What a get found. Immutable; the value's bytes belong to the caller.</summary>
public readonly record struct GetResult : IOperationResult<GetResult>
{
    /// <summary>The key exists (at the revision that was asked for).</summary>
    public bool Found { get; init; }

    /// <summary>The value. Look at <see cref="Found"/> first: it is the null value also when the key does not exist.</summary>
    public KahunaValue Value { get; init; }

    /// <summary>The revision that wrote the value, 1 or greater. When not found: the revision that deleted the key, or 0 when nothing is known of it.</summary>
    public long Revision { get; init; }

    /// <summary>How long the key still lives, by the cluster's clock; null when it does not expire. A lease never ends earlier than this says.</summary>
    public TimeSpan? RemainingTtl { get; init; }

    static GetResult IOperationResult<GetResult>.From(Operation answered) => answered.ReplyStatus switch
    {
        OutcomeStatus.Found or OutcomeStatus.NotFound => new GetResult
        {
            Found = answered.ReplyStatus == OutcomeStatus.Found,
            Value = answered.ReplyValue ?? KahunaValue.Null,
            Revision = answered.ReplyRevision,
            RemainingTtl = answered.ReplyTtl,
        },
        OutcomeStatus.RevisionCompacted => throw Failures.RevisionCompacted(answered),
        _ => throw Failures.UnexpectedStatus(answered),
    };
}
