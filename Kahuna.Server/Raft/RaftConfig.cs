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

    /// <summary>
    /// A member that was silent for so many ticks may have stood still, and its owner then refuses for as long as this again what begins a session.
    /// Leadership is not handed to it meanwhile. 0: members do not stand still.
    /// </summary>
    public int StandstillTicks { get; init; }

    public RaftLimits Limits { get; init; } = new();

    /// <summary>The log is in memory only: what memory lets go is gone, and whoever still needs it gets a snapshot.</summary>
    public bool IsVolatile { get; init; }

    /// <summary>
    /// Seed of the core's own generator for election timeouts; differs per node, group and start. A rejoining node's questions carry it,
    /// so that an answer to an earlier start is not taken for one to this.
    /// </summary>
    public required ulong Seed { get; init; }
}
