namespace Kahuna.Server.State.Rows;

/// <summary>
/// One change of a key, as <see cref="IChangeSink"/> is told of it. Its bytes are valid during the call only.
/// </summary>
internal readonly ref struct Change
{
    /// <summary>What happened.</summary>
    public ChangeKind Kind { get; init; }

    /// <summary>The key.</summary>
    public ReadOnlySpan<byte> Key { get; init; }

    /// <summary>
    /// The key's revision since this change. Of <see cref="ChangeKind.HistoryCut"/>: the newest one that can no longer
    /// be read. Of <see cref="ChangeKind.Evicted"/> and <see cref="ChangeKind.Forgotten"/>: the last one it had.
    /// </summary>
    public long Revision { get; init; }

    /// <summary>The value that was written; empty for other kinds.</summary>
    public ReadOnlySpan<byte> Value { get; init; }

    /// <summary>The value that was written is null, not empty.</summary>
    public bool IsNull { get; init; }

    /// <summary>The revision before this one can still be read.</summary>
    public bool IsPreviousKept { get; init; }
}
