namespace Kahuna.Tests.Linearizability;

/// <summary>What an answer said. What is left out is not checked. Immutable.</summary>
internal sealed record OperationResult
{
    public static OperationResult Unconstrained { get; } = new();

    /// <summary>
    /// The answer's yes or no: found by a read, applied by a set, delete, extend or increment, granted by a lock.
    /// </summary>
    public bool? Affirmed { get; init; }

    /// <summary>
    /// A <see cref="Value"/> is given: that of a get which found the key, or the sum of an increment in decimal.
    /// </summary>
    public bool HasValue { get; init; }

    public string? Value { get; init; }

    public long? Revision { get; init; }

    /// <summary>Of a read: a name for its position, by which a watch of the history begins; null: none does.</summary>
    public string? Position { get; init; }

    /// <summary>The first value that a sequence gave.</summary>
    public long? First { get; init; }

    /// <summary>The last one.</summary>
    public long? Last { get; init; }

    /// <summary>The token that a lock was granted with, from 1 on.</summary>
    public long? Token { get; init; }

    /// <summary>
    /// From this time on, on the clock of call and return, the client did not believe any more that it had the lock: it
    /// called release, or its lease was over by its own clock. Null when it still believed so at the end.
    /// </summary>
    public long? UntilNs { get; init; }
}
