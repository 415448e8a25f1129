using System.Globalization;
using System.Text;
using Grpc.Core;
using Kahuna.Client.Wire.Outcomes;

namespace Kahuna.Server.Api;

/// <summary>The one table from an outcome that is no normal answer to its gRPC status and its <c>kahuna-outcome</c> trailer. Stateless.</summary>
internal static class OutcomeErrors
{
    public const string OutcomeTrailer = "kahuna-outcome";
    public const string DidNotHappen = "did-not-happen";
    public const string Unknown = "unknown";

    /// <summary>True for outcomes that a service answers with a normal reply.</summary>
    public static bool IsNormal(OutcomeStatus status) =>
        status is OutcomeStatus.Applied or OutcomeStatus.Found or OutcomeStatus.NotFound or OutcomeStatus.ConditionFailed or OutcomeStatus.Queued;

    /// <summary>The exception that ends a call with this outcome.</summary>
    public static RpcException ToException(scoped in Outcome outcome)
    {
        string sentence = outcome.HasValue && !outcome.Value.IsEmpty ? Encoding.UTF8.GetString(outcome.Value) : SentenceWithNumbers(in outcome) ?? Sentence(outcome.Status);
        return ToException(outcome.Status, sentence);
    }

    public static RpcException ToException(OutcomeStatus status, string sentence) =>
        Build(Code(status), sentence, status is OutcomeStatus.Unknown or OutcomeStatus.Internal or OutcomeStatus.SessionUnknown or OutcomeStatus.NumberForgotten ? Unknown : DidNotHappen);

    public static RpcException Build(StatusCode code, string sentence, string outcome)
    {
        Metadata trailers = new() { { OutcomeTrailer, outcome } };
        return new RpcException(new Status(code, sentence), trailers);
    }

    private static StatusCode Code(OutcomeStatus status) => status switch
    {
        OutcomeStatus.InvalidArgument or OutcomeStatus.NumberReused => StatusCode.InvalidArgument,
        OutcomeStatus.Unimplemented => StatusCode.Unimplemented,
        OutcomeStatus.NotAnInteger or OutcomeStatus.OutOfBounds or OutcomeStatus.ModeDiffers or OutcomeStatus.FenceFailed
            or OutcomeStatus.SessionUnknown or OutcomeStatus.NumberForgotten => StatusCode.FailedPrecondition,
        OutcomeStatus.Overflow or OutcomeStatus.RevisionCompacted or OutcomeStatus.Exhausted => StatusCode.OutOfRange,
        OutcomeStatus.Busy or OutcomeStatus.LogFull or OutcomeStatus.MemoryFull or OutcomeStatus.SessionsFull or OutcomeStatus.LockFull => StatusCode.ResourceExhausted,
        OutcomeStatus.Expired => StatusCode.DeadlineExceeded,
        OutcomeStatus.NotLeader or OutcomeStatus.Unavailable or OutcomeStatus.Unknown => StatusCode.Unavailable,
        _ => StatusCode.Internal,
    };

    private static string? SentenceWithNumbers(scoped in Outcome outcome) => outcome.Status switch
    {
        OutcomeStatus.Exhausted => string.Create(CultureInfo.InvariantCulture, $"The sequence has {(outcome.Number == 0 ? "no value" : $"only {outcome.Number:N0} values")} left before its bound; none was taken."),
        OutcomeStatus.OutOfBounds => string.Create(CultureInfo.InvariantCulture, $"The sequence is at {outcome.Number}, which the change would leave outside of its bounds; nothing was changed."),
        OutcomeStatus.FenceFailed when outcome.Revision == 0 => "The fence's token does not have the lock, which nobody has; nothing was changed.",
        OutcomeStatus.FenceFailed => string.Create(CultureInfo.InvariantCulture, $"The fence's token does not have the lock, but token {outcome.Revision} does; nothing was changed."),
        OutcomeStatus.ModeDiffers when outcome.Number == 0 => "The lock is in use and is no semaphore, or this owner has or awaits it in another mode; nothing was done.",
        OutcomeStatus.ModeDiffers => string.Create(CultureInfo.InvariantCulture, $"The lock is in use as a semaphore of {outcome.Number:N0} permits; nothing was done."),
        _ => null,
    };

    private static string Sentence(OutcomeStatus status) => status switch
    {
        OutcomeStatus.NotAnInteger => "The value is no decimal integer; nothing was changed.",
        OutcomeStatus.Overflow => "The increment leaves the range of a signed 64-bit integer; nothing was changed.",
        OutcomeStatus.RevisionCompacted => "The key's history no longer holds this revision.",
        OutcomeStatus.NotLeader => "The partition has no leader that is known here; nothing was done. Try again.",
        OutcomeStatus.Unknown => "The leader of the partition changed while the operation was under way; it may or may not have been done.",
        OutcomeStatus.SessionUnknown => "The partition does not know the session; whether an earlier attempt of this number was carried out is not known.",
        OutcomeStatus.NumberForgotten => "The session has confirmed this number, so that its outcome is forgotten; this attempt did nothing.",
        OutcomeStatus.NumberReused => "Another command has this number, or this idempotency key; nothing was done.",
        OutcomeStatus.LockFull => "The lock has as many holders and waiters as it may; nothing was done. Try again when some have gone.",
        OutcomeStatus.SessionsFull => "The partition remembers as many sessions as it may; nothing was done. Try again in a few minutes.",
        _ => "The operation ended with " + status + ".",
    };
}
