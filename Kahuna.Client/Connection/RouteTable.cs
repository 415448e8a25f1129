using Kahuna.Client.Outcomes;
using Kahuna.Wire.Protos;
using Kahuna.Wire.Routing;
using Kahuna.Wire.Watches;

namespace Kahuna.Client.Connection;

/// <summary>
/// The map together with the links to its nodes, from which routes are chosen. Immutable; replaced as a whole by its
/// owner, the <see cref="ClusterLinks"/>.
/// </summary>
internal sealed class RouteTable
{
    private readonly NodeLink?[] _leaders;

    public RouteTable(ClusterMap map, IReadOnlyList<NodeLink> links)
    {
        Map = map;
        Links = [.. links];
        _leaders = new NodeLink?[map.Routes];
        for (int route = 0; route < _leaders.Length; route++)
        {
            _leaders[route] = Link(map[route].LeaderNodeId);
        }
    }

    public ClusterMap Map { get; }

    /// <summary>Every node that is connected or being connected.</summary>
    public NodeLink[] Links { get; }

    /// <summary>True when at least one node accepts operations.</summary>
    public bool IsAnyReady => AnyReady(0, except: null) is not null;

    /// <summary>The link to the leader of a route; null when none is known.</summary>
    public NodeLink? Leader(int route) => route < 0 ? null : _leaders[route];

    /// <summary>The link to a node; null when there is none.</summary>
    public NodeLink? Link(int nodeId)
    {
        foreach (NodeLink link in Links)
        {
            if (nodeId != 0 && link.NodeId == nodeId)
            {
                return link;
            }
        }

        return null;
    }

    /// <summary>
    /// A stream to any node but one; a different one for each attempt. A silent node's stream only if there is no
    /// other.
    /// </summary>
    public NodeStream? AnyReady(int attempt, NodeStream? except)
    {
        NodeStream? silent = null;
        for (int i = 0; i < Links.Length; i++)
        {
            if (Links[(int)((uint)(attempt + i) % (uint)Links.Length)].Ready is { } stream && stream != except)
            {
                if (!stream.IsSuspect)
                {
                    return stream;
                }

                silent ??= stream;
            }
        }

        return silent;
    }

    /// <summary>The stream to a route's leader; null when none is known or it is silent.</summary>
    public NodeStream? Live(int route) => Leader(route)?.Ready is { IsSuspect: false } stream ? stream : null;

    /// <summary>The description of the cluster for an application.</summary>
    public ClusterDescription Describe()
    {
        ClusterMap map = Map;
        NodeDescription[] nodes =
        [
            .. map.Nodes.Select(node => new NodeDescription(node.Id, node.Endpoint, Link(node.Id)?.Ready is not null)),
        ];
        PartitionDescription[] partitions = new PartitionDescription[map.Partitions];
        for (int i = 0; i < partitions.Length; i++)
        {
            partitions[i] = new PartitionDescription(
                i, map[i].LeaderNodeId == 0 ? null : map[i].LeaderNodeId, (long)map[i].Term);
        }

        return new ClusterDescription(map.ClusterId, map.ServerVersion, nodes, partitions);
    }
}

/// <summary>
/// The known members, which partition owns which slots, and the leader and newest term of each partition and
/// durability. Merges the views of several nodes, some of which may be outdated: a newer term and a higher version of
/// the slots always win, older ones never do. Immutable.
/// </summary>
internal sealed class ClusterMap
{
    private readonly PartitionRoute[] _routes;

    private ClusterMap(
        string clusterId,
        string serverVersion,
        IReadOnlyList<MemberNode> nodes,
        SlotMap? slots,
        PartitionRoute[] routes)
    {
        ClusterId = clusterId;
        ClusterTag = PositionFormat.ClusterTag(clusterId);
        ServerVersion = serverVersion;
        Nodes = nodes;
        Slots = slots;
        _routes = routes;
    }

    /// <summary>The map before the first view.</summary>
    public static ClusterMap Empty { get; } = new("", "", [], null, []);

    public string ClusterId { get; }

    /// <summary>Names the cluster in positions.</summary>
    public ulong ClusterTag { get; }

    public string ServerVersion { get; }

    public IReadOnlyList<MemberNode> Nodes { get; }

    /// <summary>Number of partitions; 0 before the first view.</summary>
    public int Partitions => Slots?.Partitions ?? 0;

    /// <summary>The newest known map of slots; null before the first view.</summary>
    public SlotMap? Slots { get; }

    /// <summary>
    /// Number of routes: one per partition for persistent keys, followed by one per partition for ephemeral keys if the
    /// cluster serves them.
    /// </summary>
    public int Routes => _routes.Length;

    public PartitionRoute this[int route] => _routes[route];

    /// <summary>The route of a key; -1 when none is known.</summary>
    public int RouteOf(ReadOnlySpan<byte> key, Durability durability) =>
        Slots is { } slots ? RouteOf(slots.PartitionOf(key), durability) : -1;

    /// <summary>The route of a partition's keys of one durability; -1 when none is known.</summary>
    public int RouteOf(int partition, Durability durability)
    {
        int route = partition + (durability == Durability.Ephemeral ? Partitions : 0);
        return partition < Partitions && route < _routes.Length ? route : -1;
    }

    /// <summary>Merges the view of one node into this map.</summary>
    /// <exception cref="InvalidDataException">The view is inconsistent.</exception>
    public ClusterMap Merge(DescribeClusterResponse view)
    {
        int partitions = view.Partitions.Count;
        SlotMap? slots = Merge(view, partitions);
        PartitionRoute[] merged =
            new PartitionRoute[partitions + (view.EphemeralPartitions.Count == partitions ? partitions : 0)];
        Merge(merged, view.Partitions, 0, partitions);
        if (merged.Length > partitions)
        {
            Merge(merged, view.EphemeralPartitions, partitions, partitions);
        }

        List<MemberNode> nodes = [];
        foreach (Node node in view.Nodes)
        {
            if (node.Id > 0 && Uri.TryCreate(node.Endpoint, UriKind.Absolute, out Uri? endpoint))
            {
                nodes.Add(new MemberNode((int)node.Id, endpoint));
            }
        }

        nodes.Sort(static (left, right) => left.Id.CompareTo(right.Id));
        return new ClusterMap(view.ClusterId, view.ServerVersion, nodes, slots, merged);
    }

    /// <summary>Replaces a leader by the one that a refusal named, which comes without a term; 0 removes it.</summary>
    public ClusterMap WithLeader(int route, int nodeId)
    {
        PartitionRoute[] changed = [.. _routes];
        changed[route] = changed[route] with { LeaderNodeId = nodeId, IsHearsay = true };
        return new ClusterMap(ClusterId, ServerVersion, Nodes, Slots, changed);
    }

    /// <summary>
    /// The map of slots with the higher version. A view without runs says nothing of the slots: a cluster of which
    /// nothing else is known has the initial map.
    /// </summary>
    private SlotMap? Merge(DescribeClusterResponse view, int partitions)
    {
        if (partitions is < 1 or > KeyRouting.Slots)
        {
            return partitions == 0
                ? null
                : throw new InvalidDataException(
                    FormattableString.Invariant($"the node describes {partitions} partitions"));
        }

        SlotMap? known = Slots?.Partitions == partitions ? Slots : null;
        if (view.SlotRuns.Count == 0)
        {
            return known ?? SlotMap.Initial(partitions);
        }

        if (known is not null && known.Version >= view.SlotMapVersion)
        {
            return known;
        }

        bool fits = true;
        foreach (SlotRun run in view.SlotRuns)
        {
            fits &= run.First < KeyRouting.Slots && run.Last < KeyRouting.Slots && run.Partition < partitions;
        }

        SlotMap? reported = fits && view.SlotRuns.Count <= KeyRouting.Slots
            ? SlotMap.Of(
                view.SlotMapVersion,
                partitions,
                view.SlotRuns.Select(
                    run => new SlotRange((ushort)run.First, (ushort)run.Last, (ushort)run.Partition)))
            : null;
        return reported ?? throw new InvalidDataException("the node's map of slots is inconsistent");
    }

    private void Merge(PartitionRoute[] merged, IEnumerable<PartitionLeader> view, int first, int count)
    {
        foreach (PartitionLeader seen in view)
        {
            if (seen.Partition >= count)
            {
                throw new InvalidDataException(
                    FormattableString.Invariant($"the node describes partition {seen.Partition} of {count}"));
            }

            int route = first + (int)seen.Partition;
            PartitionRoute known = merged.Length == Routes ? _routes[route] : default;
            PartitionRoute reported = new((int)seen.LeaderNodeId, seen.Term, Math.Max(seen.Epoch, known.Epoch));

            // A term has one leader, so its first report stands. A leader named by a refusal gives way to any report.
            bool isOpen = known.LeaderNodeId == 0 || known.IsHearsay;
            bool isNews = reported.Term > known.Term
                || (reported.Term == known.Term && reported.LeaderNodeId != 0 && isOpen);
            merged[route] = isNews ? reported : known with { Epoch = reported.Epoch };
        }
    }
}

/// <summary>A member of the cluster in a map. A value.</summary>
internal readonly record struct MemberNode(int Id, Uri Endpoint);

/// <summary>The leader of one route. A value.</summary>
/// <param name="LeaderNodeId">The leader's node id; 0 when none is known.</param>
/// <param name="Term">The newest known term.</param>
/// <param name="Epoch">The newest known epoch of an ephemeral partition; 0 for persistent ones.</param>
/// <param name="IsHearsay">True when a refusal named the leader, and not a map.</param>
internal readonly record struct PartitionRoute(int LeaderNodeId, ulong Term, ulong Epoch = 0, bool IsHearsay = false);
