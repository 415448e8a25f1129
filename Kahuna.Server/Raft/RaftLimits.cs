namespace Kahuna.Server.Raft;

/// <summary>How much a group sends at a time and keeps in memory. Immutable.</summary>
internal sealed record RaftLimits
{
    /// <summary>Entry bytes of one append at the most (one larger entry still goes alone).</summary>
    public int AppendBytesMax { get; init; } = 1 << 20;

    /// <summary>
    /// Entry bytes that one Ready asks to apply at the most (one larger entry still comes alone): some 10,000 small commands, which take about 10 ms, so that ticks
    /// and heartbeats have their turn while a backlog is applied.
    /// </summary>
    public int ApplyBytesMax { get; init; } = 1 << 20;

    /// <summary>Entry bytes that may be in flight to one follower before the leader waits for acknowledgements.</summary>
    public int InFlightBytesMax { get; init; } = 8 << 20;

    /// <summary>Appends that may be in flight to one follower.</summary>
    public int InFlightAppendsMax { get; init; } = 256;

    /// <summary>Bytes of entries that nobody needs any more (applied here, durable here, held by every follower that answers) but that stay in memory for a follower that falls behind.</summary>
    public int CacheBytes { get; init; } = 4 << 20;

    /// <summary>How many ticks that cache keeps an entry at least; twice as many at most (15 to 30 s). So a quiet group does not keep the entries of a busy time.</summary>
    public int CacheTicks { get; init; } = 300;

    /// <summary>Bytes of entries held in memory for a slow follower; past it they are dropped and the follower is fed from storage.</summary>
    public int CacheBytesMax { get; init; } = 32 << 20;
}
