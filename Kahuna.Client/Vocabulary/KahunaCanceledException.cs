namespace Kahuna;

/// <summary>
/// The caller's token ended the wait for an operation. A mutation that was sent may still be applied;
/// <see cref="Outcome"/> says whether that is possible.
/// </summary>
public sealed class KahunaCanceledException : OperationCanceledException
{
    /// <summary>Creates the exception.</summary>
    /// <param name="outcome">Whether the operation changed anything.</param>
    /// <param name="token">The token that was cancelled.</param>
    public KahunaCanceledException(OperationOutcome outcome, CancellationToken token)
        : base(Describe(outcome), token) => Outcome = outcome;

    /// <summary>Whether the operation changed anything.</summary>
    public OperationOutcome Outcome { get; }

    /// <inheritdoc cref="KahunaException.TransactionId"/>
    public string? TransactionId { get; init; }

    private static string Describe(OperationOutcome outcome) => outcome switch
    {
        OperationOutcome.DidNotHappen => "The operation was canceled before it could change anything.",
        OperationOutcome.Happened => "The operation was canceled after it had taken effect; its result is not known.",
        _ => "The operation was canceled after it had been sent; whether it is applied is not known.",
    };
}
