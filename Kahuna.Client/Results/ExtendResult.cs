using Kahuna.Client.Connection;
using Kahuna.Client.Wire.Outcomes;

namespace Kahuna.Client.Results;

/// <summary>How an extension of a time to live ended. Immutable.</summary>
public readonly record struct ExtendResult : IOperationResult<ExtendResult>
{
    /// <summary>True when the key has its new time to live; false when it did not exist or a condition did not hold.</summary>
    public bool Extended { get; init; }

    /// <summary>The key existed when the call was applied. With <see cref="Extended"/> false it means that a condition did not hold.</summary>
    public bool Found { get; init; }

    /// <summary>The key's revision, which an extension leaves as it is; 0 when the key does not exist.</summary>
    public long Revision { get; init; }

    static ExtendResult IOperationResult<ExtendResult>.From(Operation answered) => answered.ReplyStatus switch
    {
        OutcomeStatus.Applied or OutcomeStatus.ConditionFailed or OutcomeStatus.NotFound => new ExtendResult
        {
            Extended = answered.ReplyStatus == OutcomeStatus.Applied,
            Found = answered.ReplyStatus != OutcomeStatus.NotFound,
            Revision = answered.ReplyRevision,
        },
        OutcomeStatus.FenceFailed => throw Failures.NotHeld(answered),
        _ => throw Failures.UnexpectedStatus(answered),
    };
}
