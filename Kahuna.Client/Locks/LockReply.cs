using System.Buffers.Binary;
using Kahuna.Client.Connection;
using Kahuna.Client.Results;
using Kahuna.Client.Wire.Outcomes;

namespace Kahuna.Client.Locks;

/// <summary>What came back from an operation on a lock (docs/wire-format.md). Immutable.</summary>
internal readonly record struct LockReply : IOperationResult<LockReply>
{
    public OutcomeStatus Status { get; init; }

    /// <summary>A token.</summary>
    public long Revision { get; init; }

    /// <summary>The end of a lease, or cluster time.</summary>
    public long Number { get; init; }

    public ReadOnlyMemory<byte> Value { get; init; }

    /// <summary>Cluster time at the answer to a claim that was granted.</summary>
    public long? ClusterMs => Value.Length == sizeof(long) ? BinaryPrimitives.ReadInt64LittleEndian(Value.Span) : null;

    static LockReply IOperationResult<LockReply>.From(Operation answered) => answered.ReplyStatus switch
    {
        OutcomeStatus.Applied or OutcomeStatus.Queued or OutcomeStatus.ConditionFailed or OutcomeStatus.Found or OutcomeStatus.NotFound => new LockReply
        {
            Status = answered.ReplyStatus,
            Revision = answered.ReplyRevision,
            Number = answered.ReplyNumber,
            Value = answered.ReplyValue?.Memory ?? default,
        },
        OutcomeStatus.ModeDiffers => throw Failures.ModeDiffers(answered),
        _ => throw Failures.UnexpectedStatus(answered),
    };
}
