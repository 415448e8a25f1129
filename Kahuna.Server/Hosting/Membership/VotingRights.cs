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
    /// <summary>This node is restored, and votes from now on.</summary>
    public event Action? Restored;

    /// <summary>This node is restored, and it could not be recorded, for this reason: it does not vote yet.</summary>
    public event Action<string>? NotRecorded;

    /// <summary>Subscribes to the registry.</summary>
    public void Begin()
    {
        view.SetVoting(members.Voting == VotingState.Yes);
        members.Confirmed += Allow;
        members.MemberReplaced += Forget;
    }

    /// <summary>
    /// Lets a rebuilt node vote once all its partitions are restored, and it is recorded that they are.
    /// </summary>
    public void TryRejoin()
    {
        if (members.Voting != VotingState.Rejoining)
        {
            return;
        }

        foreach (PartitionLoop loop in loops.Loops)
        {
            if (loop.Owned.Any(static partition => !partition.CanRejoin))
            {
                return;
            }
        }

        try
        {
            members.Rejoined();
        }
        catch (IOException error)
        {
            NotRecorded?.Invoke(error.Message);
            return;
        }

        Allow();
        Restored?.Invoke();
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
