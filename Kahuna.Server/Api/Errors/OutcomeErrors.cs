using System.Globalization;
using System.Text;
using Grpc.Core;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Api.Errors;

/// <summary>
/// Maps error outcomes to a gRPC status and the <c>kahuna-outcome</c> trailer, by the rows of
/// <see cref="OutcomeStatuses"/>. Stateless.
/// </summary>
internal static class OutcomeErrors
{
    public const string OutcomeTrailer = "kahuna-outcome";
    public const string DidNotHappen = "did-not-happen";
    public const string Unknown = "unknown";

    /// <summary>True for outcomes that a service returns as a normal reply.</summary>
    public static bool IsNormal(OutcomeStatus status) => OutcomeStatuses.Find(status) is { IsNormal: true };

    /// <summary>The exception that ends a call with this outcome.</summary>
    public static RpcException ToException(scoped in Outcome outcome)
    {
        string sentence = outcome.HasValue && !outcome.Value.IsEmpty
            ? Encoding.UTF8.GetString(outcome.Value)
            : SentenceWithNumbers(in outcome) ?? SentenceOf(outcome.Status);
        return ToException(outcome.Status, sentence);
    }

    public static RpcException ToException(OutcomeStatus status, string sentence) => Build(
        OutcomeStatuses.Find(status) is { IsNormal: false } row ? (StatusCode)row.GrpcCode : StatusCode.Internal,
        sentence,
        OutcomeStatuses.MayHaveHappened(status) ? Unknown : DidNotHappen);

    public static RpcException Build(StatusCode code, string sentence, string outcome)
    {
        Metadata trailers = new() { { OutcomeTrailer, outcome } };
        return new RpcException(new Status(code, sentence), trailers);
    }

    private static string? SentenceWithNumbers(scoped in Outcome outcome)
    {
        switch (outcome.Status)
        {
            case OutcomeStatus.Exhausted:
                long left = SequenceOutcome.LeftOf(in outcome);
                return string.Create(
                    CultureInfo.InvariantCulture,
                    $"The sequence has {(left == 0 ? "no value" : $"only {left:N0} values")} left before its bound; "
                        + $"none was taken.");
            case OutcomeStatus.OutOfBounds:
                return string.Create(
                    CultureInfo.InvariantCulture,
                    $"The change would leave the sequence's latest value, {SequenceOutcome.PresentOf(in outcome)}, "
                        + $"outside of its bounds; nothing was changed.");
            case OutcomeStatus.FenceFailed:
                FencingToken current = LockOutcome.TokenOf(in outcome);
                return current.IsNone
                    ? "The fence's token does not hold the lock, which has no holder; nothing was changed."
                    : $"The fence's token does not hold the lock, but token {current} does; nothing was changed.";
            case OutcomeStatus.ModeDiffers:
                long permits = LockOutcome.PermitsOf(in outcome);
                return permits == 0
                    ? "The lock is in use and is not a semaphore, or this owner holds or awaits it in another mode; "
                        + "nothing was changed."
                    : string.Create(
                        CultureInfo.InvariantCulture,
                        $"The lock is in use as a semaphore of {permits:N0} permits; nothing was changed.");
            default:
                return null;
        }
    }

    private static string SentenceOf(OutcomeStatus status) =>
        OutcomeStatuses.Find(status)?.Sentence ?? "The operation ended with " + status + ".";
}
