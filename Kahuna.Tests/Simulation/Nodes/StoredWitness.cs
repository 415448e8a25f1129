using Kahuna.Server.Partitions;
using Kahuna.Server.Partitions.States;

namespace Kahuna.Tests.Simulation.Nodes;

/// <summary>Stands between the shipped keeper of states and the loops, and shows the rules what is said to be stored. Owned by one life of a node.</summary>
internal sealed class StoredWitness(SimNode node, IStateLoops loops, IStateStore store) : IStateLoops
{
    public bool Post(StateCall call)
    {
        if (call is StateStored stored)
        {
            node.Rules.Stored(node, stored, store);
        }

        return loops.Post(call);
    }
}
