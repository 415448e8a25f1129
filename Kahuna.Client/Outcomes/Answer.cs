using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Watches;

namespace Kahuna.Client.Outcomes;

/// <summary>
/// The reply to one operation, with the facts of its request that a result or an error names. Every result is built
/// from one. The connection fills it; the caller reads it after the operation has ended, until it takes the result.
/// </summary>
internal abstract class Answer
{
    /// <summary>True for kinds that change nothing and are safe to repeat.</summary>
    public abstract bool IsRead { get; }

    /// <summary>The key's bytes.</summary>
    public abstract ReadOnlySpan<byte> Key { get; }

    /// <summary>The number that the request carries.</summary>
    public abstract long Number { get; }

    /// <summary>The name of the lock whose token a write carries; empty without one.</summary>
    public abstract ReadOnlySpan<byte> FenceName { get; }

    /// <summary>
    /// True when it has an idempotency key. A key whose attempt failed stays free, so a pending attempt may be applied
    /// after the answer to another one.
    /// </summary>
    public abstract bool IsKeyed { get; }

    /// <summary>The fencing token that a write carries.</summary>
    public abstract FencingToken FenceToken { get; }

    /// <summary>How the last attempt was refused; <see cref="OutcomeStatus.Unset"/> if none was.</summary>
    public OutcomeStatus LastRefusal { get; set; }

    /// <summary>An attempt of this mutation ended without an answer: it may have been applied.</summary>
    public bool MayHaveHappened { get; set; }

    /// <summary>
    /// The node that was lost with that attempt and the reason, for the error message; null if no node was lost.
    /// </summary>
    public string? LostWith { get; set; }

    /// <summary>The status of the reply.</summary>
    public OutcomeStatus Status { get; private set; }

    /// <summary>The revision in the reply, or a lock's token.</summary>
    public Revision Revision { get; private set; }

    /// <summary>The number in the reply; <see cref="Outcome"/> says what it means for each kind.</summary>
    public long ReplyNumber { get; private set; }

    /// <summary>The value in the reply. Null when it carries none, which differs from the null value.</summary>
    public KahunaValue? Value { get; private set; }

    /// <summary>Up to where in its group's changes a read saw everything; null when it did not ask.</summary>
    public ChangePoint? Point { get; private set; }

    /// <summary>Names the cluster whose node got the last attempt.</summary>
    public ulong Cluster { get; set; }

    /// <summary><see cref="Point"/> for the caller; null when it did not ask.</summary>
    public WatchPosition? Position => Point is { } point
        ? new WatchPosition(Cluster, point.IsEphemeral ? Durability.Ephemeral : Durability.Persistent, [point])
        : null;

    /// <summary>The remaining time to live in a read's reply; null when there is none.</summary>
    public static TimeSpan? TtlOf(OutcomeStatus status, long number) =>
        status == OutcomeStatus.Found && number >= 0 ? TimeSpan.FromMilliseconds(number) : null;

    /// <summary>Takes the reply and copies its value.</summary>
    protected void Read(scoped in Outcome outcome)
    {
        Status = outcome.Status;
        Revision = new Revision(outcome.Revision);
        ReplyNumber = outcome.Number;
        Point = outcome.Point;
        if (outcome.HasValue && outcome.Status < OutcomeStatus.InvalidArgument)
        {
            ReadOnlyMemory<byte> bytes = outcome.Value.Length == 0
                ? ReadOnlyMemory<byte>.Empty
                : outcome.Value.ToArray();
            Value = outcome.ValueIsNull ? KahunaValue.Null : new KahunaValue(bytes);
        }
    }

    /// <summary>Forgets request and reply.</summary>
    protected void ClearAnswer()
    {
        LastRefusal = OutcomeStatus.Unset;
        MayHaveHappened = false;
        LostWith = null;
        Value = null;
        Point = null;
    }
}

/// <summary>
/// A result that is built from an answer. Implemented by every result struct; called on the caller's thread.
/// </summary>
internal interface IOperationResult<TSelf>
    where TSelf : struct, IOperationResult<TSelf>
{
    /// <summary>
    /// Builds the result. Throws <see cref="KahunaException"/> for statuses that the result cannot express.
    /// </summary>
    static abstract TSelf From(Answer answer);
}

/// <summary>
/// A result that is built from the outcome of an item of a batch. Implemented by result structs; called on the caller's
/// thread.
/// </summary>
internal interface IItemResult<TSelf>
    where TSelf : struct, IItemResult<TSelf>
{
    /// <summary>Builds the result from a status that an item can have.</summary>
    static abstract TSelf Of(OutcomeStatus status, Revision revision, long number, KahunaValue? value);
}
