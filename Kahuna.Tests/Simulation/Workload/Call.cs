namespace Kahuna.Tests.Simulation.Workload;

/// <summary>One operation of a caller: what it asked, and what came back. Filled by its caller.</summary>
internal sealed class Call
{
    public required int Process { get; init; }

    public required string Key { get; init; }

    /// <summary>The key is an ephemeral one: another than the persistent one of this name.</summary>
    public bool IsEphemeral { get; init; }

    /// <summary>The key with its durability.</summary>
    public string Name => IsEphemeral ? "ephemeral " + Key : Key;

    public required CallKind Kind { get; init; }

    public required long CallNs { get; init; }

    public string? Value { get; init; }

    public bool OnlyIfAbsent { get; init; }

    public bool OnlyIfPresent { get; init; }

    public string? OnlyIfValue { get; init; }

    public long? OnlyIfRevision { get; init; }

    public long? TtlMs { get; init; }

    public long By { get; init; }

    public long ReturnNs { get; set; }

    public CallOutcome Outcome { get; set; }

    /// <summary>Set, deleted, found or extended.</summary>
    public bool Done { get; set; }

    public string? FoundValue { get; set; }

    public long? Revision { get; set; }

    public long? Number { get; set; }

    /// <summary>The idempotency key of an allocation.</summary>
    public string? SequenceKey { get; init; }

    /// <summary>A value of a block that its client has taken.</summary>
    public bool IsFast { get; init; }

    /// <summary>The greatest value of the sequence.</summary>
    public long Bound { get; init; } = long.MaxValue;

    /// <summary>The values that were taken.</summary>
    public long First { get; set; }

    /// <inheritdoc cref="First"/>
    public long Last { get; set; }

    /// <summary>Name of the error, when there was one.</summary>
    public string? Error { get; set; }
}

internal enum CallKind
{
    Set,
    Get,
    Exists,
    Delete,
    Extend,
    Increment,

    /// <summary>Takes <see cref="Call.By"/> values of a sequence.</summary>
    Next,
}

internal enum CallOutcome
{
    /// <summary>It has not come back.</summary>
    Open,

    Ok,

    /// <summary>It surely did not happen.</summary>
    Fail,

    Unknown,
}
