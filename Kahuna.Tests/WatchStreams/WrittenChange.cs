using Kahuna.Tests.Linearizability;

namespace Kahuna.Tests.WatchStreams;

/// <summary>A write of the history as a watch would tell it. Immutable.</summary>
/// <param name="Operation">The write.</param>
/// <param name="Kind">Set or deleted.</param>
/// <param name="HasValue">The value is known.</param>
/// <param name="Value">What the key held after it.</param>
internal sealed record WrittenChange(HistoryOperation Operation, StreamEventKind Kind, bool HasValue, string? Value)
{
    /// <summary>The revision that the answer named; 0 if it named none.</summary>
    public long Revision => Operation.Result.Revision ?? 0;

    /// <summary>The write may give the key a time to live.</summary>
    public bool HasTtl => Operation is { Kind: OperationKind.Set, Arguments.TtlMs: not null };

    /// <summary>Whether the content of an event is that of this write, as far as both say.</summary>
    public bool Fits(StreamEvent told) =>
        Kind == (told.Kind == StreamEventKind.Current ? StreamEventKind.Set : told.Kind)
        && (!HasValue || !told.HasValue || Value == told.Value);
}
