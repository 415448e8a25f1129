using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State.KeyValues;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>What a loop and its partitions need to know. Immutable.</summary>
internal sealed record LoopOptions
{
    private const int TickMsDefault = 50;

    public required NodeId Self { get; init; }

    public required IReadOnlyList<NodeId> Voters { get; init; }

    /// <summary>The node that should lead a partition, by partition number.</summary>
    public required Func<int, NodeId> PreferredLeader { get; init; }

    /// <summary>Number of loops of the node.</summary>
    public int Loops { get; init; } = 1;

    /// <summary>Length of a tick in ms.</summary>
    public int TickMs { get; init; } = TickMsDefault;

    /// <summary>
    /// 0.8 to 1.6 s without a leader: long enough for a stall of a busy machine, short enough that a failover takes
    /// under 3 s.
    /// </summary>
    public int ElectionTicks { get; init; } = 16;

    public int HeartbeatTicks { get; init; } = 2;

    /// <summary>
    /// Leaders of persistent groups serve reads under a lease, without a round of heartbeats
    /// (docs/adr/0056-reads-under-a-lease.md).
    /// </summary>
    public bool HasReadLeases { get; init; }

    /// <summary>
    /// An earlier run of this node may have promised its leader not to elect another one, so that this one must wait as
    /// long before it votes.
    /// </summary>
    public bool MayHavePromised { get; init; }

    public RaftLimits RaftLimits { get; init; } = new();

    /// <summary>Command bytes of one entry: a batch larger than this becomes several entries.</summary>
    public int EntryBytesMax { get; init; } = 512 * 1024;

    /// <summary>
    /// Log batches that may be unsynced before proposals wait and so grow into larger batches (two keep the disk busy).
    /// </summary>
    public int LogBatchesInFlight { get; init; } = 2;

    /// <summary>
    /// Proposed and uncommitted command bytes of one partition; past it writes are answered with Busy.
    /// </summary>
    public long UncommittedBytesMax { get; init; } = 64 << 20;

    /// <summary>Client bytes that may wait in one loop's inbox.</summary>
    public long ClientInboxBytesMax { get; init; } = 64 << 20;

    /// <summary>Peer bytes that may wait in one loop's inbox; more is dropped, as on a network.</summary>
    public long PeerInboxBytesMax { get; init; } = 128 << 20;

    /// <summary>
    /// Bytes of names in one command that evicts keys; there are at most <see cref="Eviction.KeysPerCommand"/>.
    /// </summary>
    public int EvictNamesBytesMax { get; init; } = 64 * 1024;

    /// <summary>
    /// Keys that are swept at a time while a leader has much else to do, in commands of
    /// <see cref="ExpirySweep.KeysPerCommand"/>.
    /// </summary>
    public int SweepKeysMax { get; init; } = 512;

    /// <summary>
    /// A node that does not tick for this long was paused. A leader then forgets nothing by age for as long as
    /// commands live; on any node commands that open a session are refused for as long as this again, unless it led
    /// before and still does (<c>PauseGuard</c>). Less than what commands are remembered for beyond their life.
    /// </summary>
    public int PauseMs { get; init; } = 10_000;

    /// <summary>
    /// A follower has caught up when it has reached what its leader had committed this many ticks ago: 1 s.
    /// </summary>
    public int CaughtUpTicks { get; init; } = 20;

    /// <summary>
    /// It lags again when it has not reached what its leader had committed this many ticks ago: 10 s.
    /// </summary>
    public int LagTicks { get; init; } = 200;

    /// <summary>Ticks between looks at whether leadership should move to the preferred node.</summary>
    public int PlacementTicks { get; init; } = 20;

    /// <summary>
    /// Ticks for which a node keeps leadership that an administrator gave it, before it may move to the preferred node:
    /// 10 minutes, as long as the maintenance of a node usually takes.
    /// </summary>
    public int MoveHoldTicks { get; init; } = 12_000;

    /// <summary>
    /// Cluster time between two comparisons of the members' states, and between two stamps of that time in a partition
    /// in which something has a deadline.
    /// </summary>
    public long CheckIntervalMs { get; init; } = 60_000;

    /// <summary>
    /// Entries of an ephemeral group that may wait for a majority before proposals wait and so grow into larger entries
    /// (two keep the links busy).
    /// </summary>
    public int EphemeralEntriesInFlight { get; init; } = 2;

    /// <summary>There are ephemeral groups, and the meta group that keeps their epochs.</summary>
    public bool HasEphemeral { get; init; }

    /// <summary>
    /// Ticks without a leader after which a member that has nothing of an ephemeral group gives its epoch up: 10 s.
    /// </summary>
    public int AmnesiacPledgeTicks { get; init; } = 200;

    /// <summary>
    /// The same for a member that has everything, and knows one that has nothing: 10 min (<c>--ephemeral-patience</c>).
    /// <see cref="int.MaxValue"/>: never.
    /// </summary>
    public int PledgeTicks { get; init; } = 12_000;

    /// <summary>Ticks between two tries to have something recorded by the meta group.</summary>
    public int AskMetaTicks { get; init; } = 5;

    /// <summary>
    /// The highest feature level to which this node, while it leads the meta group, raises the cluster; null: as far as
    /// all nodes support it.
    /// </summary>
    public FeatureLevel? FeatureLevelMax { get; init; }

    public StateLimits StateLimits { get; init; } = new();

    /// <summary>
    /// Log since the stored state after which the state is stored anew: what a restart replays, and how often a key
    /// that is overwritten all the time is written.
    /// </summary>
    public long FlushLogBytes { get; init; } = 128L << 20;

    /// <summary>Whether this node may take part in elections from its start on.</summary>
    public VotingRight Voting { get; init; } = VotingRight.Full;

    /// <summary>Seed of the election timeouts; each node and group derives its own.</summary>
    public required ulong Seed { get; init; }

    /// <summary>A time in ticks of the default length; what is longer than can be counted lasts for ever.</summary>
    public static int TicksOf(TimeSpan time) => (int)Math.Min(time.TotalMilliseconds / TickMsDefault, int.MaxValue);
}
