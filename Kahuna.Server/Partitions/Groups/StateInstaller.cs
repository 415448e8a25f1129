using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// Puts a state that has arrived from another node in the place of the group's own (docs/adr/0010-snapshots.md). Owned
/// by one group; not thread-safe.
/// </summary>
internal sealed class StateInstaller(Checkpointing checkpointing, GroupDurability durability, PendingRequests requests,
    StateComparison comparison, GroupHooks hooks, EphemeralMemory ephemeral)
{
    /// <summary>Whether a state that has arrived is newer than the applied one.</summary>
    public InstallAnswer Prepare(Group group, in CheckpointMark mark)
    {
        RaftCore core = group.Core;
        if (group.Failed || !core.CanInstall(mark.Index, mark.Term))
        {
            return InstallAnswer.Superseded;
        }

        // The term in which the state was made must be on the own disk before the state is.
        bool isTermStored = core.Term >= mark.Term && !core.PromisesUnsaved && durability.ArePromisesDurable;
        return isTermStored && !group.IsStill ? InstallAnswer.Ready : InstallAnswer.NotNow;
    }

    /// <summary>Goes on with the arrived state, which is stored, or of an ephemeral group.</summary>
    public void PutInPlace(Group group, StateMachine state, in CheckpointMark mark)
    {
        requests.LoseProposed();
        InvariantException.Require(group.Core.InstallSnapshot(mark.Index, mark.Term), "a prepared state is installed");
        group.Core.RaiseLevel(mark.Level);
        durability.RestartLog(group, mark.Index, mark.Term);
        if (group.Id.IsEphemeral)
        {
            ephemeral.Track(state);
        }

        checkpointing.Install(state, mark);
        comparison.Forget();
        hooks.Installed();
        group.Installed(mark.Index, mark.Term, state.Digest);
    }
}
