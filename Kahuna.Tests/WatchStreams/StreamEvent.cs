namespace Kahuna.Tests.WatchStreams;

/// <summary>One event of a recorded watch. Immutable.</summary>
internal sealed record StreamEvent
{
    public required StreamEventKind Kind { get; init; }

    /// <summary>When the reader had it, on the history's clock.</summary>
    public required long AtNs { get; init; }

    /// <summary>The key; empty for events that concern no single key.</summary>
    public string Key { get; init; } = "";

    public long Revision { get; init; }

    /// <summary>The event tells a value: <see cref="Value"/>.</summary>
    public bool HasValue { get; init; }

    public string? Value { get; init; }

    /// <summary>A name for the position behind this event, where other watches begin; null: none does.</summary>
    public string? Position { get; init; }

    /// <summary>
    /// Of <see cref="StreamEventKind.Progress"/>: every change that was acknowledged before this time was told; null:
    /// the node did not know.
    /// </summary>
    public long? AsOfNs { get; init; }

    public bool IsChange => Kind is StreamEventKind.Set
        or StreamEventKind.Deleted
        or StreamEventKind.Expired
        or StreamEventKind.Evicted;
}
