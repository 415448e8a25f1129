using Kahuna.Server.Partitions;
using Kahuna.Server.Partitions.States;
using Kahuna.Server.Primitives;

namespace Kahuna.Tests.Simulation.Nodes;

/// <summary>Stands between the shipped keeper of states and the loops, and shows the rules what is said to be stored. Owned by one life of a node.</summary>
internal sealed class StoredWitness(SimNode node, IStateLoops loops, IStateStore store) : IStateLoops
{
    /// <summary>Last entry on the node's own disk when the first records of a view that is being stored were asked for.</summary>
    private readonly Dictionary<GroupId, LogIndex> _durable = [];

    public bool Post(StateCall call)
    {
        switch (call)
        {
            case BeginView { Transfer: 0 }:
                _durable.Remove(call.Group);
                break;
            case TakeRecords { Transfer: 0 }:
                _durable.TryAdd(call.Group, node.Rules.DurableIndex(node, call.Group));
                break;
            case StateStored stored:
                node.Rules.Stored(node, stored, store);
                if (_durable.Remove(call.Group, out LogIndex durable) && stored.Index > durable)
                {
                    node.Rules.Break("a stored state is not ahead of the node's own log", $"node {node.Id} has stored the state of group {call.Group} up to entry {stored.Index}, when its log was on stable storage up to {durable}");
                }

                break;
        }

        return loops.Post(call);
    }
}
