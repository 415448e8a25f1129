using Kahuna.Server.Primitives;
using Kahuna.Server.State.Meta;
using Kahuna.Wire.Routing;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>
/// Port: where a loop tells what others want to know of a partition. Called from the loop's turn; must not block.
/// </summary>
internal interface ILeadershipSink
{
    /// <summary>Leader, term or this node's role have changed.</summary>
    void LeadershipChanged(int index, PartitionStatus status);

    /// <summary>The meta group has recorded this map of the slots. The same or an older one may follow.</summary>
    void SlotsChanged(SlotMap slots);

    /// <summary>The meta group has recorded this about who may do what. The same or an older one may follow.</summary>
    void AccessChanged(AccessRows access)
    {
    }

    /// <summary>At this time the node had everything that the meta group's leader had committed.</summary>
    void MetaCaughtUp(NodeTime at)
    {
    }

    /// <summary>A rule of the program is broken: the partition has stopped and no longer serves requests.</summary>
    void PartitionFailed(int index, Exception error);

    /// <summary>The log or the stored state is dead; the node must stop.</summary>
    void StorageFailed(Exception error);
}
