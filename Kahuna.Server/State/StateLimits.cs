namespace Kahuna.Server.State;

/// <summary>Bounds of one partition's state. The same on every node, since applying depends on them.</summary>
internal sealed record StateLimits
{
    /// <summary>Replaced revisions kept per key.</summary>
    public int HistoryPerKey { get; init; } = 8;

    /// <summary>A replaced revision is kept for this long in cluster time: ten minutes.</summary>
    public long HistoryAgeMs { get; init; } = 600_000;

    /// <summary>Bytes of history of one partition; the oldest revisions go first. It bounds memory when a large key space is overwritten at full speed.</summary>
    public long HistoryBytes { get; init; } = 8 << 20;
}
