using Kahuna.Server.Cluster;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting.Membership;

/// <summary>Tells the loops, and who asks for readiness, what becomes known of directories: this node's may vote, another node's was replaced. Owned by the node; any thread.</summary>
internal sealed class VotingRights(KnownMembers members, LoopSet loops, ClusterView view)
{
    /// <summary>Begins to listen.</summary>
    public void Begin()
    {
        view.SetVoting(members.Voting == VotingState.Yes);
        members.Proven += Allow;
        members.MemberReplaced += Forget;
    }

    /// <summary>A rebuilt node votes again when all its partitions are restored. True when it does from now on.</summary>
    /// <exception cref="IOException">It could not be recorded; the node does not vote yet.</exception>
    public bool TryRejoin()
    {
        if (members.Voting != VotingState.Rejoining)
        {
            return false;
        }

        foreach (PartitionLoop loop in loops.Loops)
        {
            if (loop.Owned.Any(static partition => !partition.CanRejoin))
            {
                return false;
            }
        }

        members.Rejoined();
        Allow();
        return true;
    }

    private void Allow()
    {
        foreach (PartitionLoop loop in loops.Loops)
        {
            loop.PostAllowVoting();
        }

        view.SetVoting(true);
    }

    private void Forget(NodeId member)
    {
        foreach (PartitionLoop loop in loops.Loops)
        {
            loop.PostMemberReplaced(member);
        }
    }
}
