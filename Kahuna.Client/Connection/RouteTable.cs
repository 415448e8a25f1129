using Kahuna.Client.Outcomes;

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

/// <summary>Chooses the stream for an attempt. Owned by the <see cref="ClusterConnection"/>; any thread.</summary>
/// <param name="links">The links and the map.</param>
/// <param name="asksToForward">While the leader is unreachable, another node is asked to forward operations.</param>
/// <param name="patience">How long a node may be silent, in ticks of the clock.</param>
internal sealed class RouteChoice(ClusterLinks links, bool asksToForward, long patience)
{
    private long _lastProbe;

    /// <summary>
    /// The leader's stream, or any node's while no leader is reachable; null for none. Sets the attempt's route, term
    /// and epoch, and whether it is forwarded. The caller holds the operation.
    /// </summary>
    public NodeStream? Choose(Operation operation, long now)
    {
        RouteTable routes = links.Routes;
        operation.Attempt.Route = operation.Request.FixedPartition is { } partition
            ? routes.Map.RouteOf(partition, operation.Request.Durability)
            : routes.Map.RouteOf(operation.Key, operation.Request.Durability);
        operation.Attempt.IsForwarded = false;
        PartitionRoute known = operation.Attempt.Route < 0 ? default : routes.Map[operation.Attempt.Route];
        (operation.Attempt.Term, operation.Attempt.Epoch) = (known.Term, known.Epoch);
        if (operation.Attempt.HintedNodeId != 0)
        {
            NodeStream? hinted = routes.Link(operation.Attempt.HintedNodeId)?.Ready;
            operation.Attempt.HintedNodeId = 0;
            if (hinted is { IsSuspect: false })
            {
                return hinted;
            }
        }

        if (routes.Map.Partitions == 0)
        {
            return null;
        }

        NodeLink? link = routes.Leader(operation.Attempt.Route);
        NodeStream? leader = link?.Ready;
        if (leader is null)
        {
            link?.Want();
        }

        if (leader is not null && !(leader.IsSuspect && (asksToForward || IsProbeDue(now))))
        {
            return leader;
        }

        NodeStream? other = routes.AnyReady(operation.Attempt.Count, leader);
        if (other is null or { IsSuspect: true })
        {
            return leader ?? other;
        }

        // A leader that was just lost has a successor soon, and every node reports it. One that stays unreachable may
        // be so for this client only.
        operation.Attempt.IsForwarded = asksToForward
            && link is not null
            && (leader is not null || now - link.UnreadySince > patience);
        return other;
    }

    /// <summary>
    /// While a leader is silent, one operation from time to time goes to another node, whose refusal names the leader.
    /// </summary>
    private bool IsProbeDue(long now)
    {
        long last = Volatile.Read(ref _lastProbe);
        return now - last > patience / 4 && Interlocked.CompareExchange(ref _lastProbe, now, last) == last;
    }
}
