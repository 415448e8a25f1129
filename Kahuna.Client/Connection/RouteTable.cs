namespace Kahuna.Client.Connection;

/// <summary>The map together with the links to its nodes: what the way of an operation is read from. Immutable; replaced whole by its owner, the <see cref="ClusterLinks"/>.</summary>
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

    /// <summary>Every node that is connected or to be connected.</summary>
    public NodeLink[] Links { get; }

    /// <summary>Some node can be sent to.</summary>
    public bool IsAnyReady => AnyReady(0, except: null) is not null;

    /// <summary>The link to the leader at a route's end, if one is known.</summary>
    public NodeLink? Leader(int route) => route < 0 ? null : _leaders[route];

    /// <summary>The link to a node, if there is one.</summary>
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

    /// <summary>A stream to any node but one, to a silent one only when there is no other; another one with each attempt.</summary>
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

    /// <summary>The stream on which the leader at a route's end can be asked; null when none is known or it is silent.</summary>
    public NodeStream? Live(int route) => Leader(route)?.Ready is { IsSuspect: false } stream ? stream : null;

    /// <summary>What a caller is told about the cluster.</summary>
    public ClusterDescription Describe()
    {
        ClusterMap map = Map;
        NodeDescription[] nodes = [.. map.Nodes.Select(node => new NodeDescription(node.Id, node.Endpoint, Link(node.Id)?.Ready is not null))];
        PartitionDescription[] partitions = new PartitionDescription[map.Partitions];
        for (int i = 0; i < partitions.Length; i++)
        {
            partitions[i] = new PartitionDescription(i, map[i].LeaderNodeId == 0 ? null : map[i].LeaderNodeId, (long)map[i].Term);
        }

        return new ClusterDescription(map.ClusterId, map.ServerVersion, nodes, partitions);
    }
}
