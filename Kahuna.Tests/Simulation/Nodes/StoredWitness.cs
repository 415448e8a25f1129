using Kahuna.Server.Partitions;
using Kahuna.Server.Partitions.States;
using Kahuna.Server.Primitives;

namespace Kahuna.Tests.Simulation.Nodes;

/// <summary>Stands between the shipped keeper of states and the loops, and shows the rules what is said to be stored. Owned by one life of a node.</summary>
internal sealed class StoredWitness(SimNode node, IStateLoops loops, IStateStore store) : IStateLoops
{
    public bool Post(StateCall call)
    {
        if (call is StateStored stored)
        {
            // It is told in the step in which the state got its name.
            LogIndex durable = node.Rules.DurableIndex(node, call.Group);
            node.Rules.Stored(node, stored, store);
            if (stored.Index > durable)
            {
                node.Rules.Break("a stored state is not ahead of the node's own log", $"node {node.Id} has stored the state of group {call.Group} up to entry {stored.Index}, when its log was on stable storage up to {durable}");
            }
        }

        return loops.Post(call);
    }
}
