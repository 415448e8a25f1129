using Kahuna.Server.Primitives;
using Kahuna.Server.State.KeyValues;
using Kahuna.Server.State.Locks;
using Kahuna.Server.State.Rows;
using Kahuna.Server.State.Sessions;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>Metrics of a partition on this node as of one moment. Immutable; any thread.</summary>
/// <param name="Applied">Last entry that is in the state.</param>
/// <param name="Digest">Digest of the state after it; equal on all nodes at equal entries.</param>
/// <param name="Keys">Keys that exist.</param>
/// <param name="Stored">Last entry that is in the stored state.</param>
/// <param name="LogStart">The entry before the first that the log still holds.</param>
/// <param name="MayVote">The node takes part in elections of this partition.</param>
/// <param name="Sessions">What is remembered of clients.</param>
/// <param name="Locks">Claims for locks.</param>
/// <param name="Prepared">What is held for transactions over several partitions.</param>
/// <param name="Evicted">Keys that went for want of room.</param>
/// <param name="IsStalled">The disk of the node's log has not finished a write for an election timeout.</param>
internal sealed record PartitionMetrics(LogIndex Applied, ulong Digest, long Keys, LogIndex Stored, LogIndex LogStart,
    bool MayVote, SessionMetrics Sessions, LockMetrics Locks, PreparedCounts Prepared, long Evicted = 0,
    bool IsStalled = false)
{
    /// <summary>What waits in the leader's memory; nothing unless this node leads.</summary>
    public RequestCounts Requests { get; init; }

    /// <summary>What pessimistic transactions hold here; nothing unless this node leads.</summary>
    public HoldCounts Holds => Requests.Holds;

    /// <summary>Sequences that exist.</summary>
    public int Sequences { get; init; }

    /// <summary>How far the followers lag; empty unless this node leads.</summary>
    public IReadOnlyList<FollowerLag> Followers { get; init; } = [];

    /// <summary>
    /// What each account uses in the group's state: not as of the moment, but as of now. Null before the first tick.
    /// </summary>
    public AccountUsage? Accounts { get; init; }

    public static PartitionMetrics None { get; } =
        new(default, 0, 0, default, default, false, default, default, default);
}

/// <summary>What pessimistic transactions hold in a group, in its leader's memory.</summary>
/// <param name="Transactions">Transactions that hold a key or wait for one.</param>
/// <param name="Keys">Keys that they hold, each as often as it is held.</param>
/// <param name="Waiting">Requests that wait for a key.</param>
internal readonly record struct HoldCounts(int Transactions, int Keys, int Waiting);

/// <summary>What waits in the memory of a group's leader.</summary>
/// <param name="Holds">What pessimistic transactions hold.</param>
/// <param name="Proposals">Writes that are queued or proposed, and not answered yet.</param>
/// <param name="Reads">Reads that wait for their round, or for their turn.</param>
/// <param name="LongPolls">Reads of locks whose answer is delayed until there is news.</param>
internal readonly record struct RequestCounts(HoldCounts Holds, int Proposals, int Reads, int LongPolls);

/// <summary>How far a follower lags behind its leader.</summary>
/// <param name="Member">The follower.</param>
/// <param name="Entries">Committed entries that it has not acknowledged.</param>
internal readonly record struct FollowerLag(NodeId Member, long Entries);
