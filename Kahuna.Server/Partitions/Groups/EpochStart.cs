using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// Begins an epoch of an ephemeral group on this node: an empty state and an empty log. Owned by one group; not
/// thread-safe.
/// </summary>
internal sealed class EpochStart(GroupId group, LoopOptions options, LoopPorts ports, Checkpointing checkpointing)
{
    /// <summary>
    /// Drops what was, and returns the core of the new epoch, which remembers the old one's terms and votes.
    /// </summary>
    /// <param name="membership">The epoch, and how long leases of the one before may last.</param>
    /// <param name="promises">Terms and votes of this node.</param>
    /// <param name="voting">Whether this node may vote in the epoch.</param>
    public RaftCore Begin(EpochMembership membership, in HardState promises, VotingRight voting)
    {
        StateLimits limits = options.StateLimits.InEpoch(membership.Epoch);
        StateMachine state = new(limits with { LeasesBeforeMs = membership.LeasesBeforeMs });
        ports.Memory.Track(state);
        checkpointing.BeginAnew(state);
        RaftCore core = new GroupRecovery(group, options, ports).EmptyCore(promises, voting);
        core.SaveAgain();
        string how = voting == VotingRight.Full ? ", empty" : ", which waits to be restored";
        ulong epoch = membership.Epoch;
        ports.Report($"{group.Title}: epoch {epoch} begins on this node{how}.");
        return core;
    }
}
