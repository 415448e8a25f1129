namespace Kahuna.Tests.Linearizability;

/// <summary>What an answer said. What is left out is not checked. Immutable.</summary>
internal sealed record OperationResult
{
    public static OperationResult Unconstrained { get; } = new();

    /// <summary>The answer's yes or no: found by a read, applied by a set, delete, extend or increment.</summary>
    public bool? Affirmed { get; init; }

    /// <summary>A <see cref="Value"/> is given: that of a get which found the key, or the sum of an increment in decimal.</summary>
    public bool HasValue { get; init; }

    public string? Value { get; init; }

    public long? Revision { get; init; }

    /// <summary>The first value that a sequence gave.</summary>
    public long? First { get; init; }

    /// <summary>The last one.</summary>
    public long? Last { get; init; }
}
