using Kahuna.Server.Primitives;

namespace Kahuna.Tests.Raft;

/// <summary>A snapshot on the way from a leader to a follower. Owned by one <see cref="RandomCluster"/>.</summary>
internal sealed class SnapshotTransfer(RaftNode leader, Term term, NodeId follower, StateCopy state)
{
    public RaftNode Leader => leader;

    public NodeId Follower => follower;

    public StateCopy State => state;

    /// <summary>The follower got there another way while this was on its way.</summary>
    public bool IsAborted { get; private set; }

    /// <summary>Looks whether the leader still waits for it. True when it just ceased to.</summary>
    public bool CheckAborted()
    {
        if (IsAborted
            || !leader.IsUp
            || leader.Core.Term != term
            || leader.Core.Role != Kahuna.Server.Raft.RaftRole.Leader)
        {
            return false;
        }

        IsAborted = !leader.Core.AwaitsSnapshot(follower);
        return IsAborted;
    }

    /// <summary>Tells the leader, if it is still there.</summary>
    public void End(bool installed)
    {
        if (leader.IsUp)
        {
            leader.Core.SnapshotEnded(follower, state.Index, installed);
        }
    }
}
