using Kahuna.Wire.Outcomes;

namespace Kahuna;

/// <summary>
/// An operation failed. <see cref="Outcome"/> says whether it changed anything, <see cref="Code"/> why it failed. A
/// condition that did not hold and a missing key are results and never this exception.
/// </summary>
public sealed class KahunaException : Exception
{
    /// <summary>Creates the exception.</summary>
    /// <param name="code">Why the operation failed.</param>
    /// <param name="outcome">Whether it changed anything.</param>
    /// <param name="message">One sentence for a person.</param>
    /// <param name="innerException">The cause, if known; otherwise null.</param>
    public KahunaException(
        KahunaErrorCode code, OperationOutcome outcome, string message, Exception? innerException = null)
        : base(message, innerException)
    {
        Code = code;
        Outcome = outcome;
    }

    /// <summary>Whether the operation changed anything.</summary>
    public OperationOutcome Outcome { get; }

    /// <summary>Why the operation failed.</summary>
    public KahunaErrorCode Code { get; }

    /// <summary>
    /// Names a transaction over several partitions that was committed, or whose outcome is not known; null in all other
    /// cases. <c>KahunaClient.Transactions.FindOutcomeAsync</c> finds the outcome.
    /// </summary>
    public string? TransactionId { get; init; }

    /// <summary>
    /// What a node answered; the default where it did not, or where an earlier attempt may have happened.
    /// </summary>
    internal OutcomeStatus Answered { get; init; }

    /// <summary>
    /// True when repeating the operation cannot apply it twice, which is exactly when it did not happen. The repetition
    /// may fail again: a malformed request stays malformed.
    /// </summary>
    public bool IsSafeToRetry => Outcome == OperationOutcome.DidNotHappen;
}
