using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;

namespace Kahuna.Server.State.Meta;

/// <summary>What the meta group has recorded, as of one moment. Immutable; any thread.</summary>
internal sealed class MetaView(
    int partitions,
    IReadOnlyList<NodeId> voters,
    IReadOnlyDictionary<NodeId, MetaNode> nodes,
    IReadOnlyDictionary<GroupId, MetaGroup> groups,
    long ceilingMs = StateLimits.LeaseCeilingMsDefault)
{
    public static MetaView Empty { get; } = new(
        0, [], new Dictionary<NodeId, MetaNode>(), new Dictionary<GroupId, MetaGroup>());

    /// <summary>Number of partitions; 0 before the cluster was configured.</summary>
    public int Partitions => partitions;

    /// <summary>The voters of every group; none before the cluster was configured.</summary>
    public IReadOnlyList<NodeId> Voters => voters;

    /// <summary>What a node said of itself last; the default for one that never did.</summary>
    public MetaNode Node(NodeId node) => nodes.GetValueOrDefault(node);

    public MetaGroup Group(GroupId group) => groups.GetValueOrDefault(group) ?? MetaGroup.First(ceilingMs);
}

/// <summary>A node's newest start that the meta group knows.</summary>
internal readonly record struct MetaNode(ulong Incarnation, ulong Nonce);

/// <summary>What is recorded of an ephemeral group. Immutable.</summary>
/// <param name="Epoch">The epoch that is open, from 1 on.</param>
/// <param name="ClosedMs">Cluster time of the meta group at which the epoch before it was closed.</param>
/// <param name="CeilingMs">The longest lease that may be granted in this epoch.</param>
/// <param name="CeilingBeforeMs">For how long leases of earlier epochs could still go on when it was opened; 0 in the
/// first.</param>
/// <param name="Pledges">By node, in this epoch.</param>
internal sealed record MetaGroup(
    ulong Epoch, long ClosedMs, long CeilingMs, long CeilingBeforeMs, IReadOnlyList<MetaPledge> Pledges)
{
    /// <summary>The first epoch.</summary>
    public static MetaGroup First(long ceilingMs) => new(1, 0, ceilingMs, 0, []);

    /// <summary>What a node has pledged in this epoch; the default when nothing.</summary>
    public MetaPledge PledgeOf(NodeId node) => Pledges.FirstOrDefault(pledge => pledge.Node == node);
}

/// <summary>A node's word that it takes no more part in the epoch.</summary>
/// <param name="Node">Whose.</param>
/// <param name="Taken">The highest number that was taken.</param>
/// <param name="Released">The highest number that was given back.</param>
internal readonly record struct MetaPledge(NodeId Node, ulong Taken, ulong Released)
{
    /// <summary>The word holds.</summary>
    public bool IsActive => Taken > Released;
}
