using Kahuna.Tests.Linearizability;

namespace Kahuna.Tests.Cluster.Soak;

/// <summary>How an operation ended. Immutable.</summary>
/// <param name="Outcome">Answered, surely did not happen, or unknown.</param>
/// <param name="Result">What was answered.</param>
/// <param name="Error">Name of the error, null when it was answered.</param>
internal readonly record struct SoakAnswer(HistoryOutcome Outcome, OperationResult Result, string? Error)
{
    public static SoakAnswer Ok(OperationResult result) => new(HistoryOutcome.Ok, result, null);

    public static SoakAnswer Failed(string error, bool surely) =>
        new(surely ? HistoryOutcome.Fail : HistoryOutcome.Unknown, OperationResult.Unconstrained, error);
}
