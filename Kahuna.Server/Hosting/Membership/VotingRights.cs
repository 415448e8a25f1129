using Kahuna.Server.Cluster;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Partitions.Loops;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting.Membership;

/// <summary>
/// Informs loops and readiness of changes in the registry: this node's directory may vote, or another node's was
/// replaced. Owned by the node; any thread.
/// </summary>
internal sealed class VotingRights(MemberRegistry members, LoopSet loops, ClusterView view)
{
    /// <summary>Subscribes to the registry.</summary>
    public void Begin()
    {
        view.SetVoting(members.Voting == VotingState.Yes);
        members.Confirmed += Allow;
        members.MemberReplaced += Forget;
    }

    /// <summary>Lets a rebuilt node vote once all its partitions are restored. True when it does from now on.</summary>
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
