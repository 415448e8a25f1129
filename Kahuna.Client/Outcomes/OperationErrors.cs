using System.Globalization;
using System.Text;
using System.Text.RegularExpressions;
using Kahuna.Wire;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Outcomes;

/// <summary>
/// Creates every exception with which an operation can end, so that code, outcome and message agree. Stateless, any
/// thread.
/// </summary>
internal static class OperationErrors
{
    public static KahunaException NameTooLong(string field, string name) => Refused(
        string.Create(
            CultureInfo.InvariantCulture,
            $"{field} is {Encoding.UTF8.GetByteCount(name):N0} bytes; the limit is {Limits.KeyBytesMax:N0}"));

    public static KahunaException ValueTooLong(string field, int bytes) => Refused(
        string.Create(
            CultureInfo.InvariantCulture,
            $"{CallerNames.Of(field)} is {bytes:N0} bytes; no server accepts more than {Limits.ValueBytesCeiling:N0}"));

    public static KahunaException NoUtf8(string field) =>
        Refused($"{field} has an unpaired surrogate and cannot be written as UTF-8");

    public static KahunaException NotAnInteger(Answer answered) => NoInteger(KeyText(answered));

    public static KahunaException NoInteger(string key) => new(
        KahunaErrorCode.NotAnInteger,
        OperationOutcome.DidNotHappen,
        $"The value of \"{key}\" is not a decimal integer; nothing was changed.");

    public static KahunaException Overflow(Answer answered) => NoRoomForSum(KeyText(answered));

    public static KahunaException NoRoomForSum(string key) => new(
        KahunaErrorCode.Overflow,
        OperationOutcome.DidNotHappen,
        $"The increment of \"{key}\" would leave the signed 64-bit range; nothing was changed.");

    /// <summary>Something that a transaction had read has changed.</summary>
    public static KahunaException Conflict(string key) => new(
        KahunaErrorCode.TransactionConflict,
        OperationOutcome.DidNotHappen,
        $"\"{key}\" has changed since the transaction read it; nothing was written. Run the transaction again.");

    /// <summary>A range that a transaction had looked at has a key more or less.</summary>
    public static KahunaException RangeConflict(string range) => new(
        KahunaErrorCode.TransactionConflict,
        OperationOutcome.DidNotHappen,
        $"A key under \"{range}\" came or went since the transaction looked; nothing was written. Run the transaction "
            + "again.");

    /// <summary>A call of a transaction that is over.</summary>
    public static KahunaException TransactionEnded(string sentence) =>
        new(KahunaErrorCode.TransactionEnded, OperationOutcome.DidNotHappen, sentence);

    /// <summary>An increment of a transaction cannot be carried out.</summary>
    public static KahunaException NoSum(Answer answered) => NoSum(answered.Status, answered.ReplyNumber);

    /// <inheritdoc cref="NoSum(Answer)"/>
    public static KahunaException NoSum(OutcomeStatus status, long operation) => new(
        status == OutcomeStatus.Overflow ? KahunaErrorCode.Overflow : KahunaErrorCode.NotAnInteger,
        OperationOutcome.DidNotHappen,
        string.Create(
            CultureInfo.InvariantCulture,
            $"Operation {operation + 1:N0} of the transaction cannot increment its key: "
                + $"{(status == OutcomeStatus.Overflow
                    ? "the sum would leave the signed 64-bit range" : "the value is not a decimal integer")}; "
                + $"nothing was changed."));

    public static KahunaException RevisionCompacted(Answer answered) => new(
        KahunaErrorCode.RevisionCompacted,
        OperationOutcome.DidNotHappen,
        string.Create(
            CultureInfo.InvariantCulture,
            $"The history of \"{KeyText(answered)}\" no longer holds the revision that was asked for; the latest is "
                + $"{answered.Revision.Value:N0}."));

    /// <summary>An argument that the server would refuse with the same message.</summary>
    public static KahunaException BadArgument(string sentence) => Refused(CallerNames.Of(sentence));

    public static KahunaException NoSequence(Answer answered) => new(
        KahunaErrorCode.SequenceNotFound,
        Nothing(answered),
        $"There is no sequence \"{KeyText(answered)}\"; create it first.");

    public static KahunaException Exhausted(Answer answered) =>
        Exhausted(KeyText(answered), answered.ReplyNumber, Nothing(answered));

    public static KahunaException Exhausted(
        string sequence, long left, OperationOutcome outcome = OperationOutcome.DidNotHappen) =>
        new(
        KahunaErrorCode.SequenceExhausted,
        outcome,
        string.Create(
            CultureInfo.InvariantCulture,
            $"The sequence \"{sequence}\" has {(left == 0 ? "no value" : $"only {left:N0} values")} left "
                + $"before its bound; none was taken."));

    public static KahunaException NoBlock(string name) => new(
        KahunaErrorCode.DeadlineExceeded,
        OperationOutcome.DidNotHappen,
        $"No block of values of sequence \"{name}\" arrived in time; this call took no value. Repeat it.");

    public static KahunaException OutOfBounds(Answer answered) => new(
        KahunaErrorCode.InvalidArgument,
        OperationOutcome.DidNotHappen,
        string.Create(
            CultureInfo.InvariantCulture,
            $"The sequence \"{KeyText(answered)}\" is at {answered.ReplyNumber}, which the change would leave outside "
                + $"its bounds; nothing was changed."));

    /// <summary>A write's fencing token is not current.</summary>
    public static KahunaException NotHeld(Answer answered) => new(
        KahunaErrorCode.LockLost,
        OperationOutcome.DidNotHappen,
        string.Create(
            CultureInfo.InvariantCulture,
            $"Token {answered.FenceToken} no longer holds the lock \"{Encoding.UTF8.GetString(answered.FenceName)}\" "
                + $"({(answered.Revision.IsNone ? "nobody does" : $"token {answered.Revision} does")}); "
                + $"\"{KeyText(answered)}\" was not changed."));

    /// <summary>A script ended with an error.</summary>
    public static KahunaException ScriptFailed(Answer answered) => new(
        KahunaErrorCode.ScriptFailed,
        Nothing(answered),
        Sentence(answered.Value is { } sentence ? Encoding.UTF8.GetString(sentence.Memory.Span)
            : "The script ended with an error; nothing was applied"));

    public static KahunaException ModeDiffers(Answer answered)
    {
        string use = answered.ReplyNumber == 0
            ? "as a lock, or by this owner in another mode"
            : string.Create(CultureInfo.InvariantCulture, $"as a semaphore of {answered.ReplyNumber:N0} permits");
        return new KahunaException(
            KahunaErrorCode.LockModeDiffers,
            OperationOutcome.DidNotHappen,
            $"\"{KeyText(answered)}\" is in use {use}; nothing was changed.");
    }

    /// <summary>The caller holds the lock in shared mode and claims it exclusively.</summary>
    public static KahunaException WaitsForItself(string resource, FencingToken token) => new(
        KahunaErrorCode.LockModeDiffers,
        OperationOutcome.DidNotHappen,
        string.Create(
            CultureInfo.InvariantCulture,
            $"The caller holds the lock \"{resource}\" shared, under token {token}: to acquire it exclusively would "
                + $"deadlock. Release the shared one first."));

    /// <summary>The wait for a lock ran out.</summary>
    public static KahunaException LockBusy(string resource, TimeSpan waited) => new(
        KahunaErrorCode.LockBusy,
        OperationOutcome.DidNotHappen,
        string.Create(
            CultureInfo.InvariantCulture,
            $"The lock \"{resource}\" was not free within {waited.TotalSeconds:0.###} s."));

    /// <summary>
    /// Waiting for a lock failed, or verifying its grant did. The failed request itself changed nothing, but the claim
    /// exists and is being released.
    /// </summary>
    public static KahunaException ClaimIsMade(KahunaException failure) =>
        new(
            failure.Code,
            OperationOutcome.Unknown,
            $"{failure.Message} The claim for the lock exists; it is released if a node can be reached, and may "
                + $"otherwise hold the lock for one lease.",
            failure);

    /// <summary>A lease ended before the reply that granted it arrived.</summary>
    public static KahunaException LeaseTooShort(string resource, TimeSpan lease) => new(
        KahunaErrorCode.LockLost,
        OperationOutcome.DidNotHappen,
        string.Create(
            CultureInfo.InvariantCulture,
            $"The lease of {lease.TotalMilliseconds:0.###} ms on \"{resource}\" ended each time before its grant "
                + $"could be used; use a longer one."));

    public static KahunaException UnexpectedStatus(Answer answered) => new(
        KahunaErrorCode.Protocol,
        answered.IsRead ? OperationOutcome.DidNotHappen : OperationOutcome.Unknown,
        string.Create(
            CultureInfo.InvariantCulture,
            $"The server answered with status {(byte)answered.Status}, which is not defined for this operation."));

    /// <summary>The range of a consistent scan changed in each try to read all partitions at one moment.</summary>
    public static KahunaException RangeTooBusy(int tries) => new(
        KahunaErrorCode.ScanExpired,
        OperationOutcome.DidNotHappen,
        string.Create(
            CultureInfo.InvariantCulture,
            $"The range changed in each of {tries} tries to read all partitions at one moment. Scan a smaller range."));

    /// <summary>A description in a reply cannot be parsed.</summary>
    public static KahunaException UnknownDescription(string what) => new(
        KahunaErrorCode.Protocol,
        OperationOutcome.DidNotHappen,
        $"The server's description of {what} cannot be read by this client.");

    /// <summary>
    /// The request timeout passed while a reply was due, or after an attempt that was never answered.
    /// </summary>
    public static KahunaException NoReply(Answer operation) => operation switch
    {
        { IsRead: true } => new(
            KahunaErrorCode.DeadlineExceeded,
            OperationOutcome.DidNotHappen,
            "No reply came before the request timeout."),
        { LostWith: { } node } => new(
            KahunaErrorCode.ConnectionLost,
            OperationOutcome.Unknown,
            $"The connection to {node} was lost after the write had been sent, and no further attempt was answered "
                + $"before the request timeout; whether it is applied is not known."),
        _ => new(
            KahunaErrorCode.DeadlineExceeded,
            OperationOutcome.Unknown,
            "The write was sent, and no reply came before the request timeout; whether it is applied is not known."),
    };

    /// <summary>The request timeout passed before the operation was sent.</summary>
    public static KahunaException NotSent() => new(
        KahunaErrorCode.DeadlineExceeded,
        OperationOutcome.DidNotHappen,
        "The request timeout passed before the operation could be sent.");

    /// <summary>The client was disposed before the call.</summary>
    public static ObjectDisposedException Closed() => new("Kahuna.Client.KahunaClient");

    public static KahunaException Unreachable(string reasons, TimeSpan waited) => new(
        KahunaErrorCode.Unavailable,
        OperationOutcome.DidNotHappen,
        string.Create(
            CultureInfo.InvariantCulture,
            $"No node of the cluster could be reached within {waited.TotalSeconds:0.###} s: {reasons}."));

    public static KahunaException Disposed(bool mayHaveHappened) => new(
        KahunaErrorCode.ClientDisposed,
        mayHaveHappened ? OperationOutcome.Unknown : OperationOutcome.DidNotHappen,
        mayHaveHappened
            ? "The client was disposed after the write had been sent; whether it is applied is not known."
            : "The client was disposed before the operation was answered.");

    /// <summary>No server certificate is trusted, which no further attempt can change.</summary>
    public static KahunaException Untrusted(string objection, bool mayHaveHappened) => new(
        KahunaErrorCode.Untrusted,
        mayHaveHappened ? OperationOutcome.Unknown : OperationOutcome.DidNotHappen,
        Sentence("No server of the cluster is trusted: " + objection));

    public static KahunaException PositionOfAnotherCluster() => Refused(
        "the position of the watch is of another cluster, or the cluster was created anew");

    public static KahunaException PositionOfAnotherLevel(Durability durability) => Refused(
        $"the position of the watch is of {(durability == Durability.Ephemeral ? "ephemeral" : "persistent")} keys, "
            + "and the watch is of the others");

    public static KahunaException PositionFromTheFuture() => Refused(
        "the position of the watch is ahead of the cluster: it did not come from it, or the cluster has lost data");

    /// <summary>A node refused a watch for good.</summary>
    public static KahunaException WatchRefused(OutcomeStatus status, string text)
    {
        OutcomeRow? row = OutcomeStatuses.Find(status);
        return new KahunaException(
            row?.Error ?? KahunaErrorCode.Protocol,
            OperationOutcome.DidNotHappen,
            Sentence(text.Length > 0 ? Named(status, text) : row?.Sentence ?? "The node refused the watch."));
    }

    /// <summary>The keys of a cache are more or larger than it may hold.</summary>
    public static KahunaException CacheTooLarge(string name, int keysMax, long bytesMax) => Refused(
        string.Create(
            CultureInfo.InvariantCulture,
            $"the cache of \"{name}\" would hold more than MaxKeys ({keysMax:N0}) or MaxBytes ({bytesMax:N0}) allow; "
                + $"it has ended"));

    /// <summary>No node began a watch in time.</summary>
    public static KahunaException WatchNotServed(string? reason, TimeSpan waited) => new(
        KahunaErrorCode.Unavailable,
        OperationOutcome.DidNotHappen,
        string.Create(
            CultureInfo.InvariantCulture,
            $"No node began the watch within {waited.TotalSeconds:0.###} s{(reason is null ? "" : ": " + reason)}."));

    /// <summary>The limit of waiting operations is reached.</summary>
    public static KahunaException TooManyWaiting(int waitingMax, string? unreachable)
    {
        string cause = waitingMax == 0
            ? "The operation could not be sent at once"
            : string.Create(CultureInfo.InvariantCulture, $"{waitingMax:N0} operations are waiting already");
        string suffix = unreachable is null ? "" : $"; no node of the cluster can be reached: {unreachable}";
        return new KahunaException(
            unreachable is null ? KahunaErrorCode.Overloaded : KahunaErrorCode.Unavailable,
            OperationOutcome.DidNotHappen,
            $"{cause}, and MaxWaiting allows no more{suffix}.");
    }

    /// <summary>
    /// The deadline passed while the operation waited to be sent again; its last refusal is the reason.
    /// </summary>
    public static KahunaException GaveUp(Answer operation, string? unreachable) => operation.LastRefusal switch
    {
        _ when operation.MayHaveHappened => NoReply(operation),
        OutcomeStatus.Busy => new(
            KahunaErrorCode.Overloaded,
            OperationOutcome.DidNotHappen,
            "The leader was overloaded and refused the operation until the request timeout."),
        OutcomeStatus.KeyInTransaction => new(
            KahunaErrorCode.KeyInTransaction,
            OperationOutcome.DidNotHappen,
            "A transaction that is being committed held the key until the request timeout; nothing was changed."),
        OutcomeStatus.Expired => new(
            KahunaErrorCode.DeadlineExceeded,
            OperationOutcome.DidNotHappen,
            "The operation waited in the server until the request timeout and was dropped before it took effect."),
        _ when unreachable is not null => new(
            KahunaErrorCode.Unavailable,
            OperationOutcome.DidNotHappen,
            $"No node of the cluster could be reached until the request timeout: {unreachable}."),
        OutcomeStatus.Unavailable => new(
            KahunaErrorCode.Unavailable,
            OperationOutcome.DidNotHappen,
            "No node served the key until the request timeout: the connection to the last one ended, or it was "
                + "starting, stopping or resuming after a pause."),
        _ => new(
            KahunaErrorCode.Unavailable,
            OperationOutcome.DidNotHappen,
            "No leader was known for the key until the request timeout."),
    };

    /// <summary>The error of a reply with an error status.</summary>
    public static KahunaException FromOutcome(scoped in Outcome outcome, bool isRead, bool mayHaveHappened)
    {
        OutcomeRow? row = OutcomeStatuses.Find(outcome.Status);
        OperationOutcome happened = isRead || row is { RefusesRequest: true } ? OperationOutcome.DidNotHappen
            : mayHaveHappened || row is null ? OperationOutcome.Unknown
            : row.Happened;
        string sentence = outcome.Value.Length > 0
            ? Sentence(Named(outcome.Status, Encoding.UTF8.GetString(outcome.Value)))
            : row?.Sentence ?? string.Create(
                CultureInfo.InvariantCulture,
                $"The server answered with status {(byte)outcome.Status}, which this client does not know.");
        return outcome.Status == OutcomeStatus.TransactionConflict && happened == OperationOutcome.Unknown
            ? TransactionErrors.CommitUnknown()
            : new KahunaException(row?.Error ?? KahunaErrorCode.Protocol, happened, sentence)
            {
                Answered = mayHaveHappened ? default : outcome.Status,
            };
    }

    /// <summary>This attempt took nothing; an earlier one with the same idempotency key may still be applied.</summary>
    private static OperationOutcome Nothing(Answer answered) =>
        answered is { IsKeyed: true, MayHaveHappened: true } ? OperationOutcome.Unknown : OperationOutcome.DidNotHappen;

    private static KahunaException Refused(string sentence) =>
        new(KahunaErrorCode.InvalidArgument, OperationOutcome.DidNotHappen, sentence + ".");

    /// <summary>A node's sentence with the SDK's names; one about a missing right repeats a key as it is.</summary>
    private static string Named(OutcomeStatus status, string text) =>
        status is OutcomeStatus.PermissionDenied or OutcomeStatus.Unauthenticated ? text : CallerNames.Of(text);

    private static string Sentence(string text) => text.EndsWith('.') ? text : text + ".";

    private static string KeyText(Answer operation) => Encoding.UTF8.GetString(operation.Key);
}

/// <summary>Replaces the wire's field names in a refusal by the SDK's names. Stateless, any thread.</summary>
internal static partial class CallerNames
{
    private static readonly Dictionary<string, string> s_names = new(StringComparer.Ordinal)
    {
        ["if_absent"] = "OnlyIfAbsent",
        ["if_present"] = "OnlyIfPresent",
        ["if_value"] = "OnlyIfValue",
        ["if_revision"] = "OnlyIfRevision",
        ["at_revision"] = "AtRevision",
        ["without_history"] = "WithoutHistory",
        ["return_previous"] = "ReturnPrevious",
        ["lease_ms"] = "Lease",
        ["wait_ms"] = "Wait",
        ["hold_ms"] = "Hold",
        ["ttl_ms"] = "Ttl",
    };

    /// <summary>
    /// The sentence with the SDK's names; a time span has its unit after the number and not in its name.
    /// </summary>
    public static string Of(string sentence) => Field().Replace(
        Span().Replace(sentence, "$1 is $2 ms; it must be $3 to $4 ms"),
        static match => s_names.GetValueOrDefault(match.Value, match.Value));

    [GeneratedRegex(
        @"\b([a-z]+_ms) is (-?\d+(?:,\d+)*); it must be (\d+(?:,\d+)*) to (\d+(?:,\d+)*)",
        RegexOptions.CultureInvariant)]
    private static partial Regex Span();

    [GeneratedRegex(@"\b[a-z]+_[a-z]+\b", RegexOptions.CultureInvariant)]
    private static partial Regex Field();
}
