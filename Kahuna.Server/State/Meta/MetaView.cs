using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Routing;

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

    /// <summary>The cluster's feature level; 1 before it was ever raised.</summary>
    public FeatureLevel FeatureLevel { get; init; }

    /// <summary>Which partition owns which slots; null before the cluster was configured.</summary>
    public SlotMap? Slots { get; init; }

    /// <summary>Its version; 0 before the cluster was configured.</summary>
    public ulong SlotMapVersion => Slots?.Version ?? 0;

    /// <summary>The records about who may do what.</summary>
    public AccessRows Access { get; init; } = AccessRows.Empty;

    /// <summary>The slot maps with which epochs of ephemeral groups began, apart from the initial one.</summary>
    public IReadOnlyDictionary<GroupId, SlotMap> SlotsOfEpochs { private get; init; } =
        new Dictionary<GroupId, SlotMap>();

    /// <summary>What a node said of itself last; the default for one that never did.</summary>
    public MetaNode Node(NodeId node) => nodes.GetValueOrDefault(node);

    public MetaGroup Group(GroupId group) => groups.GetValueOrDefault(group) ?? MetaGroup.First(ceilingMs);

    /// <summary>
    /// The slot map as of the beginning of an ephemeral group's epoch; null while it was the initial one.
    /// </summary>
    public SlotMap? SlotsOfEpoch(GroupId group) => SlotsOfEpochs.GetValueOrDefault(group);
}

/// <summary>A node's newest start that the meta group knows.</summary>
internal readonly record struct MetaNode(ulong Incarnation, ulong Nonce)
{
    /// <summary>The feature levels that it supports.</summary>
    public FeatureRange Features { get; init; }
}

/// <summary>What is recorded of an ephemeral group. Immutable.</summary>
/// <param name="Epoch">The epoch that is open, from 1 on.</param>
/// <param name="Closed">Cluster time of the meta group at which the epoch before it was closed.</param>
/// <param name="CeilingMs">The longest lease that may be granted in this epoch.</param>
/// <param name="CeilingBeforeMs">For how long leases of earlier epochs could still go on when it was opened; 0 in the
/// first.</param>
/// <param name="Pledges">By node, in this epoch.</param>
internal sealed record MetaGroup(
    Epoch Epoch, ClusterTime Closed, long CeilingMs, long CeilingBeforeMs, IReadOnlyList<MetaPledge> Pledges)
{
    /// <summary>The first epoch.</summary>
    public static MetaGroup First(long ceilingMs) => new(new Epoch(1), default, ceilingMs, 0, []);

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
