using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>What one group's core needs to know. Immutable.</summary>
internal sealed record RaftConfig
{
    public required NodeId Self { get; init; }

    public required GroupId Group { get; init; }

    /// <summary>Voting members, this node normally among them.</summary>
    public required IReadOnlyList<NodeId> Voters { get; init; }

    /// <summary>Members that receive the log and neither vote nor count.</summary>
    public IReadOnlyList<NodeId> Learners { get; init; } = [];

    /// <summary>An election starts after a random number of ticks in [this, 2 × this) without a leader.</summary>
    public int ElectionTicks { get; init; } = 10;

    /// <summary>Ticks between heartbeats; less than <see cref="ElectionTicks"/>.</summary>
    public int HeartbeatTicks { get; init; } = 1;

    /// <summary>Entry bytes of one append at the most (one larger entry still goes alone).</summary>
    public int AppendBytesMax { get; init; } = 1 << 20;

    /// <summary>Entry bytes that may be in flight to one follower before the leader waits for acknowledgements.</summary>
    public int InFlightBytesMax { get; init; } = 8 << 20;

    /// <summary>Appends that may be in flight to one follower.</summary>
    public int InFlightAppendsMax { get; init; } = 256;

    /// <summary>Bytes of entries that nobody needs any more (applied here, durable here, held by every follower that answers) but that stay in memory for a follower that falls behind.</summary>
    public int CacheBytes { get; init; } = 4 << 20;

    /// <summary>Bytes of entries held in memory for a slow follower; past it they are dropped and the follower is fed from storage.</summary>
    public int CacheBytesMax { get; init; } = 32 << 20;

    /// <summary>
    /// Seed of the core's own generator for election timeouts; differs per node, group and start. A rejoining node's questions carry it,
    /// so that an answer to an earlier start is not taken for one to this.
    /// </summary>
    public required ulong Seed { get; init; }
}
