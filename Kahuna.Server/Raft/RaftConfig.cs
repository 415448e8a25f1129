using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Raft;

/// <summary>Configuration of one group's core. Immutable.</summary>
internal sealed record RaftConfig
{
    public required NodeId Self { get; init; }

    public required GroupId Group { get; init; }

    /// <summary>Voting members, this node normally among them.</summary>
    public required IReadOnlyList<NodeId> Voters { get; init; }

    /// <summary>Members that receive the log and neither vote nor count.</summary>
    public IReadOnlyList<NodeId> Learners { get; init; } = [];

    /// <summary>Shortest election timeout. Each timeout is a random number of ticks in [this, 2 × this).</summary>
    public int ElectionTicks { get; init; } = 10;

    /// <summary>Ticks between heartbeats; less than <see cref="ElectionTicks"/>.</summary>
    public int HeartbeatTicks { get; init; } = 1;

    /// <summary>
    /// Length in ms of the promise to elect no other leader, on which a read lease rests
    /// (docs/adr/0056-reads-under-a-lease.md): the shortest election timeout. 0: no leases; a round of heartbeats
    /// confirms each read.
    /// </summary>
    public int PromiseMs { get; init; }

    /// <summary>
    /// Time from the start for which this node neither votes nor campaigns, in ms, because it may have promised that in
    /// an earlier run; 0 for none.
    /// </summary>
    public int PromisedBeforeMs { get; init; }

    /// <summary>
    /// Ticks of silence after which a member may have been paused. A paused member refuses new sessions for the same
    /// time again, so leadership is not transferred to it meanwhile. 0 turns the check off.
    /// </summary>
    public int PauseTicks { get; init; }

    public RaftLimits Limits { get; init; } = new();

    /// <summary>The highest feature level of entries that this node can apply; it takes none above it.</summary>
    public FeatureLevel LevelMax { get; init; } = FeatureLevels.Newest;

    /// <summary>
    /// The log is in memory only. Entries dropped from memory are gone; a member that still needs them gets a snapshot.
    /// </summary>
    public bool IsVolatile { get; init; }

    /// <summary>
    /// Seed of the election timeouts; differs per node, group and start. A rejoining node's queries carry it, so that
    /// replies to an earlier start are told apart.
    /// </summary>
    public required ulong Seed { get; init; }
}

/// <summary>How much a group sends at a time and keeps in memory. Immutable.</summary>
internal sealed record RaftLimits
{
    /// <summary>Most entry bytes of one append. A larger entry travels alone.</summary>
    public int AppendBytesMax { get; init; } = 1 << 20;

    /// <summary>
    /// Most entry bytes that one Ready asks to apply; a larger entry comes alone. About 10,000 small commands, which
    /// take about 10 ms, so that ticks and heartbeats proceed while a backlog is applied.
    /// </summary>
    public int ApplyBytesMax { get; init; } = 1 << 20;

    /// <summary>Most entry bytes in flight to one follower before the leader waits for acknowledgements.</summary>
    public int InFlightBytesMax { get; init; } = 8 << 20;

    /// <summary>Most appends in flight to one follower.</summary>
    public int InFlightAppendsMax { get; init; } = 256;

    /// <summary>
    /// Bytes of entries that stay in memory for followers that fall behind, although they are applied, durable, and
    /// held by every active follower.
    /// </summary>
    public int CacheBytes { get; init; } = 4 << 20;

    /// <summary>
    /// Shortest time that the cache keeps an entry, in ticks; the longest is twice that (15 to 30 s). A quiet group
    /// thus frees the entries of a busy time.
    /// </summary>
    public int CacheTicks { get; init; } = 300;

    /// <summary>
    /// Most bytes of entries in memory for a slow follower. Beyond it they are dropped, and the follower is served from
    /// storage.
    /// </summary>
    public int CacheBytesMax { get; init; } = 32 << 20;
}
