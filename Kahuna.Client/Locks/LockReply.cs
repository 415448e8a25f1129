using System.Buffers.Binary;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Locks;

/// <summary>The reply to an operation on a lock (docs/wire-format.md). Immutable.</summary>
internal readonly record struct LockReply : IOperationResult<LockReply>
{
    public OutcomeStatus Status { get; init; }

    /// <summary>The token that was granted or that is current.</summary>
    public FencingToken Token { get; init; }

    /// <summary>The end of a lease, or the time at which a claim waits, in cluster time.</summary>
    public long TimeMs { get; init; }

    /// <summary>Of a page of a list: where the next one begins; 0 at the end.</summary>
    public long Cursor => TimeMs;

    public ReadOnlyMemory<byte> Value { get; init; }

    /// <summary>Cluster time at the answer to a granted claim.</summary>
    public long? ClusterMs => Value.Length == sizeof(long) ? BinaryPrimitives.ReadInt64LittleEndian(Value.Span) : null;

    static LockReply IOperationResult<LockReply>.From(Answer answer) => answer.Status switch
    {
        OutcomeStatus.Applied
            or OutcomeStatus.Queued
            or OutcomeStatus.ConditionFailed
            or OutcomeStatus.Found
            or OutcomeStatus.NotFound => new LockReply
            {
                Status = answer.Status,
                Token = new FencingToken(answer.Revision.Value),
                TimeMs = answer.ReplyNumber,
                Value = answer.Value?.Memory ?? default,
            },
        OutcomeStatus.ModeDiffers => throw OperationErrors.ModeDiffers(answer),
        _ => throw OperationErrors.UnexpectedStatus(answer),
    };
}
