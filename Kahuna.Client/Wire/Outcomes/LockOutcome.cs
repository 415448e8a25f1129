namespace Kahuna.Wire.Outcomes;

/// <summary>
/// The outcomes of commands about locks under their own names. A lock's outcome carries a token where a key's carries
/// its revision, and a moment or permits where a key's carries a number. Stateless, any thread.
/// </summary>
internal static class LockOutcome
{
    /// <summary>The token of the claim, or of the first holder, in an outcome.</summary>
    public static FencingToken TokenOf(scoped in Outcome outcome) => new(outcome.Revision);

    /// <summary>End of a lease, or the time at which a claim waits, in cluster time.</summary>
    public static long TimeMsOf(scoped in Outcome outcome) => outcome.Number;

    /// <summary>Of <see cref="OutcomeStatus.ModeDiffers"/>: the permits of the semaphore; 0 of a lock.</summary>
    public static long PermitsOf(scoped in Outcome outcome) => outcome.Number;

    /// <summary>The lock is held under a token until a moment of cluster time.</summary>
    public static Outcome Held(FencingToken token, long endMs) => new(OutcomeStatus.Applied, token.Value, endMs);

    /// <summary>The claim that was asked about holds its lock until a moment of cluster time.</summary>
    public static Outcome HeldUntil(FencingToken token, long endMs) => new(OutcomeStatus.Found, token.Value, endMs);

    /// <summary>The lock, or the place in its queue, was given back.</summary>
    public static Outcome Released(FencingToken token) => new(OutcomeStatus.Applied, token.Value);

    /// <summary>The claim waits, as of a moment of cluster time.</summary>
    public static Outcome Queued(FencingToken token, long timeMs) => new(OutcomeStatus.Queued, token.Value, timeMs);

    /// <summary>
    /// The lock is another's, whose token is current and whose lease ends at a moment of cluster time, if that is said.
    /// </summary>
    public static Outcome Refused(FencingToken current, long endMs = 0) =>
        new(OutcomeStatus.ConditionFailed, current.Value, endMs);

    /// <summary>The lock is in use in another mode.</summary>
    public static Outcome ModeDiffers(FencingToken token, int permits) =>
        new(OutcomeStatus.ModeDiffers, token.Value, permits);

    /// <summary>A write's token does not have its lock.</summary>
    public static Outcome FenceFailed(FencingToken current) => new(OutcomeStatus.FenceFailed, current.Value);
}
