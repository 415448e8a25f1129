using System.Globalization;
using System.Text;
using Kahuna.Client.Wire;
using Kahuna.Client.Wire.Outcomes;

namespace Kahuna.Client.Connection;

/// <summary>Every exception that an operation can end with, made in one place so that code, outcome and sentence agree. Stateless, any thread.</summary>
internal static class Failures
{
    public static KahunaException NameTooLong(string field, string name) => Refused(
        string.Create(CultureInfo.InvariantCulture, $"{field} is {Encoding.UTF8.GetByteCount(name):N0} bytes; the limit is {Limits.KeyBytesMax:N0}"));

    public static KahunaException ValueTooLong(string field, int bytes) => Refused(
        string.Create(CultureInfo.InvariantCulture, $"{CallerNames.Of(field)} is {bytes:N0} bytes; no server accepts more than {Limits.ValueBytesCeiling:N0}"));

    public static KahunaException NoUtf8(string field) => Refused($"{field} has an unpaired surrogate and cannot be written as UTF-8");

    public static KahunaException NotAnInteger(Operation answered) => new(
        KahunaErrorCode.NotAnInteger, OperationOutcome.DidNotHappen, $"The value of \"{KeyText(answered)}\" is no decimal integer; nothing was changed.");

    public static KahunaException Overflow(Operation answered) => new(
        KahunaErrorCode.Overflow, OperationOutcome.DidNotHappen, $"The increment of \"{KeyText(answered)}\" would leave the signed 64-bit range; nothing was changed.");

    public static KahunaException RevisionCompacted(Operation answered) => new(
        KahunaErrorCode.RevisionCompacted,
        OperationOutcome.DidNotHappen,
        string.Create(CultureInfo.InvariantCulture, $"The history of \"{KeyText(answered)}\" no longer holds the revision that was asked for; the latest is {answered.ReplyRevision:N0}."));

    /// <summary>An argument that the server would refuse in the same words.</summary>
    public static KahunaException BadArgument(string sentence) => Refused(CallerNames.Of(sentence));

    public static KahunaException NoSequence(Operation answered) => new(
        KahunaErrorCode.SequenceNotFound, Nothing(answered), $"There is no sequence \"{KeyText(answered)}\"; create it first.");

    public static KahunaException Exhausted(Operation answered) => Exhausted(KeyText(answered), answered.ReplyNumber, Nothing(answered));

    public static KahunaException Exhausted(string sequence, long left, OperationOutcome outcome = OperationOutcome.DidNotHappen) => new(
        KahunaErrorCode.SequenceExhausted,
        outcome,
        string.Create(CultureInfo.InvariantCulture, $"The sequence \"{sequence}\" has {(left == 0 ? "no value" : $"only {left:N0} values")} left before its bound; none was taken."));

    public static KahunaException OutOfBounds(Operation answered) => new(
        KahunaErrorCode.InvalidArgument,
        OperationOutcome.DidNotHappen,
        string.Create(CultureInfo.InvariantCulture, $"The sequence \"{KeyText(answered)}\" is at {answered.ReplyNumber}, which the change would leave outside of its bounds; nothing was changed."));

    /// <summary>The token that a write carried is not current.</summary>
    public static KahunaException NotHeld(Operation answered) => new(
        KahunaErrorCode.LockLost,
        OperationOutcome.DidNotHappen,
        string.Create(
            CultureInfo.InvariantCulture,
            $"Token {answered.FenceToken} does not hold the lock \"{Encoding.UTF8.GetString(answered.FenceName)}\" any more ({(answered.ReplyRevision == 0 ? "nobody does" : $"token {answered.ReplyRevision} does")}); \"{KeyText(answered)}\" was not changed."));

    public static KahunaException ModeDiffers(Operation answered) => new(
        KahunaErrorCode.LockModeDiffers,
        OperationOutcome.DidNotHappen,
        string.Create(
            CultureInfo.InvariantCulture,
            $"\"{KeyText(answered)}\" is in use {(answered.ReplyNumber == 0 ? "as a lock, or by this owner in another mode" : $"as a semaphore of {answered.ReplyNumber:N0} permits")}; nothing was changed."));

    /// <summary>The caller holds the lock in shared mode and asks for it exclusively.</summary>
    public static KahunaException WaitsForItself(string resource, long token) => new(
        KahunaErrorCode.LockModeDiffers,
        OperationOutcome.DidNotHappen,
        string.Create(CultureInfo.InvariantCulture, $"The caller holds the lock \"{resource}\" shared, under token {token}: to get it exclusively would mean to wait for itself. Give the shared one back first."));

    /// <summary>The wait for a lock ran out.</summary>
    public static KahunaException LockBusy(string resource, TimeSpan waited) => new(
        KahunaErrorCode.LockBusy,
        OperationOutcome.DidNotHappen,
        string.Create(CultureInfo.InvariantCulture, $"The lock \"{resource}\" was not free within {waited.TotalSeconds:0.###} s."));

    /// <summary>Waiting for a lock, or making sure of it, failed: what failed is a read, or was not sent, but there is a claim, which is being given back.</summary>
    public static KahunaException ClaimIsMade(KahunaException failure) =>
        new(failure.Code, OperationOutcome.Unknown, $"{failure.Message} The claim for the lock was made; it is given back if a node can be reached, and may get the lock for one lease otherwise.", failure);

    /// <summary>A lease ended before the reply that granted it was here.</summary>
    public static KahunaException LeaseTooShort(string resource, TimeSpan lease) => new(
        KahunaErrorCode.LockLost,
        OperationOutcome.DidNotHappen,
        string.Create(CultureInfo.InvariantCulture, $"The lease of {lease.TotalMilliseconds:0.###} ms on \"{resource}\" was over each time before its grant could be used; ask for a longer one."));

    public static KahunaException UnexpectedStatus(Operation answered) => new(
        KahunaErrorCode.Protocol,
        answered.IsRead ? OperationOutcome.DidNotHappen : OperationOutcome.Unknown,
        string.Create(CultureInfo.InvariantCulture, $"The server answered with status {(byte)answered.ReplyStatus}, which does not belong to this operation."));

    /// <summary>The request timeout passed while a reply was awaited, or after an attempt that was never answered.</summary>
    public static KahunaException NoReply(Operation operation) => operation switch
    {
        { IsRead: true } => new(KahunaErrorCode.DeadlineExceeded, OperationOutcome.DidNotHappen, "No reply came before the request timeout."),
        { LostWith: { } node } => new(
            KahunaErrorCode.ConnectionLost,
            OperationOutcome.Unknown,
            $"The connection to {node} was lost after the write had been sent, and no further attempt was answered before the request timeout; whether it is applied is not known."),
        _ => new(KahunaErrorCode.DeadlineExceeded, OperationOutcome.Unknown, "The write was sent, and no reply came before the request timeout; whether it is applied is not known."),
    };

    /// <summary>The request timeout passed before the operation was written to any stream.</summary>
    public static KahunaException NotSent() => new(
        KahunaErrorCode.DeadlineExceeded, OperationOutcome.DidNotHappen, "The request timeout passed before the operation could be sent.");

    public static KahunaException Unreachable(string reasons, TimeSpan waited) => new(
        KahunaErrorCode.Unavailable,
        OperationOutcome.DidNotHappen,
        string.Create(CultureInfo.InvariantCulture, $"No node of the cluster could be reached within {waited.TotalSeconds:0.###} s: {reasons}."));

    public static KahunaException Disposed(bool mayHaveHappened) => new(
        KahunaErrorCode.ClientDisposed,
        mayHaveHappened ? OperationOutcome.Unknown : OperationOutcome.DidNotHappen,
        mayHaveHappened ? "The client was disposed after the write had been sent; whether it is applied is not known." : "The client was disposed before the operation was answered.");

    /// <summary>No server's certificate is trusted, which no further attempt changes.</summary>
    public static KahunaException Untrusted(string objection, bool mayHaveHappened) => new(
        KahunaErrorCode.Untrusted, mayHaveHappened ? OperationOutcome.Unknown : OperationOutcome.DidNotHappen, Sentence("No server of the cluster is trusted: " + objection));

    /// <summary>As many operations wait as may.</summary>
    public static KahunaException TooManyWaiting(int waitingMax, string? unreachable) => new(
        unreachable is null ? KahunaErrorCode.Overloaded : KahunaErrorCode.Unavailable,
        OperationOutcome.DidNotHappen,
        string.Create(CultureInfo.InvariantCulture, $"{(waitingMax == 0 ? "The operation could not be sent at once" : $"{waitingMax:N0} operations wait already")}, and MaxWaiting lets no more wait{(unreachable is null ? "" : $"; no node of the cluster can be reached: {unreachable}")}."));

    /// <summary>The deadline passed while the operation waited to be sent again; its last refusal says why it had to.</summary>
    public static KahunaException GaveUp(Operation operation, string? unreachable) => operation.LastRefusal switch
    {
        _ when operation.MayHaveHappened => NoReply(operation),
        OutcomeStatus.Busy => new(KahunaErrorCode.Overloaded, OperationOutcome.DidNotHappen, "The leader was overloaded and refused the operation until the request timeout."),
        OutcomeStatus.Expired => new(KahunaErrorCode.DeadlineExceeded, OperationOutcome.DidNotHappen, "The operation waited in the server until the request timeout and was dropped before anything was done."),
        _ when unreachable is not null => new(KahunaErrorCode.Unavailable, OperationOutcome.DidNotHappen, $"No node of the cluster could be reached until the request timeout: {unreachable}."),
        OutcomeStatus.Unavailable => new(KahunaErrorCode.Unavailable, OperationOutcome.DidNotHappen, "No node served the key until the request timeout: the connection to the last one ended, or it was starting, stopping or just back from a standstill."),
        _ => new(KahunaErrorCode.Unavailable, OperationOutcome.DidNotHappen, "No leader was known for the key until the request timeout."),
    };

    /// <summary>For replies that end an operation with an error.</summary>
    public static KahunaException FromOutcome(scoped in Outcome outcome, bool isRead, bool mayHaveHappened)
    {
        OperationOutcome refused = mayHaveHappened ? OperationOutcome.Unknown : OperationOutcome.DidNotHappen;
        string sentence = outcome.Value.Length > 0 ? Sentence(CallerNames.Of(Encoding.UTF8.GetString(outcome.Value))) : "";
        OperationOutcome unknown = isRead ? OperationOutcome.DidNotHappen : OperationOutcome.Unknown;
        return outcome.Status switch
        {
            OutcomeStatus.InvalidArgument => Make(KahunaErrorCode.InvalidArgument, OperationOutcome.DidNotHappen, sentence, "The server refused the request as malformed."),
            OutcomeStatus.Unimplemented => Make(KahunaErrorCode.Unimplemented, OperationOutcome.DidNotHappen, sentence, "The server's version does not serve this operation."),
            OutcomeStatus.MemoryFull => Make(KahunaErrorCode.MemoryFull, refused, sentence, "The server's memory for data of this level is full (persistent or ephemeral); delete keys, or let them expire."),
            OutcomeStatus.LogFull => Make(KahunaErrorCode.LogFull, refused, sentence, "The server's log or disk is full; it accepts no writes."),
            OutcomeStatus.SessionsFull => Make(KahunaErrorCode.SessionsFull, refused, sentence, "The partition remembers as many client sessions as it may; try again in a few minutes."),
            OutcomeStatus.LockFull => Make(KahunaErrorCode.LockFull, refused, sentence, "The lock has as many holders and waiters as it may; try again when some have gone."),
            OutcomeStatus.NumberReused => Make(KahunaErrorCode.InvalidArgument, OperationOutcome.DidNotHappen, sentence, "Another command has this number, or this idempotency key."),
            OutcomeStatus.SessionUnknown or OutcomeStatus.NumberForgotten => Make(
                KahunaErrorCode.OutcomeUnknown, unknown, sentence, "The cluster has forgotten this client's session, so that it is not known whether an earlier attempt of the write was applied."),
            OutcomeStatus.Unknown => Make(KahunaErrorCode.OutcomeUnknown, unknown, sentence, "The leader changed while the operation was under way; how it ended is not known."),
            OutcomeStatus.Internal => Make(KahunaErrorCode.Internal, unknown, sentence, "The partition stopped on a broken invariant."),
            _ => Make(KahunaErrorCode.Protocol, unknown, sentence, string.Create(CultureInfo.InvariantCulture, $"The server answered with status {(byte)outcome.Status}, which this client does not know.")),
        };
    }

    private static KahunaException Make(KahunaErrorCode code, OperationOutcome outcome, string sentence, string otherwise) =>
        new(code, outcome, sentence.Length > 0 ? sentence : otherwise);

    /// <summary>Nothing was taken by this attempt; an earlier one with the same key may still be carried out.</summary>
    private static OperationOutcome Nothing(Operation answered) => answered is { IsKeyed: true, MayHaveHappened: true } ? OperationOutcome.Unknown : OperationOutcome.DidNotHappen;

    private static KahunaException Refused(string sentence) => new(KahunaErrorCode.InvalidArgument, OperationOutcome.DidNotHappen, sentence + ".");

    private static string Sentence(string text) => text.EndsWith('.') ? text : text + ".";

    private static string KeyText(Operation operation) => Encoding.UTF8.GetString(operation.Key);
}
