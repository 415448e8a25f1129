using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;

namespace Kahuna.Tests.Simulation.Nodes;

/// <summary>
/// Stands between the shipped keeper of states and the loops, and shows the rules what is said to be stored. Owned by
/// one life of a node.
/// </summary>
internal sealed class StoredWitness(SimNode node, ICheckpointLoops loops, IStateStore store) : ICheckpointLoops
{
    public bool Post(CheckpointRequest call)
    {
        if (call is StateStored stored)
        {
            // It is told in the step in which the state got its name.
            LogIndex durable = node.Rules.DurableIndex(node, call.Group);
            node.Rules.Stored(node, stored, store);
            if (stored.Index > durable)
            {
                node.Rules.Break(
                    "a stored state is not ahead of the node's own log",
                    $"node {node.Id} has stored the state of group {call.Group} up to entry {stored.Index}, when its "
                        + $"log was on stable storage up to {durable}");
            }
        }

        if (call is Install { State: not null } install
            && node.Replaced is { } end
            && install.Group == GroupId.Of(end.Group, isEphemeral: false))
        {
            EndWhereReplaced(end, install.Mark);
        }

        return loops.Post(call);
    }

    /// <summary>The state has its name, and the partition has not heard of it.</summary>
    private void EndWhereReplaced(ReplacedEnd end, in CheckpointMark mark)
    {
        node.Replaced = null;
        RaftCore core = node.Loops!.Group(end.Group).Core;
        if (node.Scheduler.NowNs < end.UntilNs
            && core.LogStart < mark.Index
            && mark.Index <= core.LastIndex
            && core.TermOf(mark.Index) != mark.Term)
        {
            end.Ended();
            throw new SimCrashException(end.Power);
        }
    }
}
