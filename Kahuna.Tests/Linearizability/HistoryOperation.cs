namespace Kahuna.Tests.Linearizability;

/// <summary>One operation as its caller saw it, one line of a history file (docs/histories.md). Immutable.</summary>
internal sealed record HistoryOperation
{
    /// <summary>Who called; a process has one operation at a time, over all keys.</summary>
    public required long Process { get; init; }

    public required string Key { get; init; }

    public required OperationKind Kind { get; init; }

    public OperationArguments Arguments { get; init; } = OperationArguments.None;

    /// <summary>Nanoseconds of the one monotonic clock of the history, 0 or greater.</summary>
    public required long CallNs { get; init; }

    /// <summary>When the answer was there, or when the caller gave up; null when it never did.</summary>
    public long? ReturnNs { get; init; }

    public required HistoryOutcome Outcome { get; init; }

    public OperationResult Result { get; init; } = OperationResult.Unconstrained;

    /// <summary>The line of the file, from 1 on; 0 when the operation comes from elsewhere.</summary>
    public int Line { get; init; }

    public bool IsRead => Kind is OperationKind.Get or OperationKind.Exists;

    /// <summary>
    /// The same with the answer forgotten: everything that the answered one can do, this one can do too.
    /// </summary>
    public HistoryOperation WithUnknownOutcome() =>
        this with { Outcome = HistoryOutcome.Unknown, ReturnNs = null, Result = OperationResult.Unconstrained };
}
