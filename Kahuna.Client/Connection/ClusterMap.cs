using Kahuna.Client.Wire.Commands;
using Kahuna.Client.Wire.Protos;
using Kahuna.Client.Wire.Routing;

namespace Kahuna.Client.Connection;

/// <summary>
/// What is known of the cluster: its members, and for each partition and durability the leader and the newest term. Put together from the
/// views of several nodes, of which some may be out of date: a newer term always wins, an older one never. Immutable.
/// </summary>
internal sealed class ClusterMap
{
    private readonly PartitionRoute[] _routes;

    private ClusterMap(string clusterId, string serverVersion, IReadOnlyList<MemberNode> nodes, int partitions, PartitionRoute[] routes)
    {
        ClusterId = clusterId;
        ServerVersion = serverVersion;
        Nodes = nodes;
        Partitions = partitions;
        _routes = routes;
    }

    /// <summary>Nothing is known.</summary>
    public static ClusterMap Empty { get; } = new("", "", [], 0, []);

    public string ClusterId { get; }

    public string ServerVersion { get; }

    public IReadOnlyList<MemberNode> Nodes { get; }

    /// <summary>Number of partitions; 0 when nothing is known.</summary>
    public int Partitions { get; }

    /// <summary>Number of routes: one for each partition's persistent keys, then, where the cluster serves them, one for each partition's ephemeral keys.</summary>
    public int Routes => _routes.Length;

    public PartitionRoute this[int route] => _routes[route];

    /// <summary>The route of a key; -1 when nothing is known that serves it.</summary>
    public int RouteOf(ReadOnlySpan<byte> key, CommandDurability durability) => Partitions == 0 ? -1 : RouteOf(KeyRouting.Partition(key, Partitions), durability);

    /// <summary>The route of a partition's keys of one level; -1 when nothing is known that serves them.</summary>
    public int RouteOf(int partition, CommandDurability durability)
    {
        int route = partition + (durability == CommandDurability.Ephemeral ? Partitions : 0);
        return partition < Partitions && route < _routes.Length ? route : -1;
    }

    /// <summary>This map with the view of one node worked in.</summary>
    /// <exception cref="InvalidDataException">The view makes no sense.</exception>
    public ClusterMap Merge(DescribeClusterResponse view)
    {
        int partitions = view.Partitions.Count;
        PartitionRoute[] merged = new PartitionRoute[partitions + (view.EphemeralPartitions.Count == partitions ? partitions : 0)];
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
        return new ClusterMap(view.ClusterId, view.ServerVersion, nodes, partitions, merged);
    }

    /// <summary>This map with the leader that a refusal named, which comes without a term; 0: none is known any more.</summary>
    public ClusterMap WithLeader(int route, int nodeId)
    {
        PartitionRoute[] changed = [.. _routes];
        changed[route] = changed[route] with { LeaderNodeId = nodeId, IsHearsay = true };
        return new ClusterMap(ClusterId, ServerVersion, Nodes, Partitions, changed);
    }

    private void Merge(PartitionRoute[] merged, IEnumerable<PartitionLeader> view, int first, int count)
    {
        foreach (PartitionLeader seen in view)
        {
            if (seen.Partition >= count)
            {
                throw new InvalidDataException(FormattableString.Invariant($"the node describes partition {seen.Partition} of {count}"));
            }

            int route = first + (int)seen.Partition;
            PartitionRoute known = merged.Length == Routes ? _routes[route] : default;
            PartitionRoute reported = new((int)seen.LeaderNodeId, seen.Term, Math.Max(seen.Epoch, known.Epoch));

            // A term has one leader, so that the first report of it stands; hearsay gives way to any report.
            bool isOpen = known.LeaderNodeId == 0 || known.IsHearsay;
            bool isNews = reported.Term > known.Term || (reported.Term == known.Term && reported.LeaderNodeId != 0 && isOpen);
            merged[route] = isNews ? reported : known with { Epoch = reported.Epoch };
        }
    }
}

/// <summary>A member of the cluster as a map names it. A value.</summary>
internal readonly record struct MemberNode(int Id, Uri Endpoint);

/// <summary>Where a partition's operations go. A value.</summary>
/// <param name="LeaderNodeId">The leader; 0 when none is known.</param>
/// <param name="Term">The newest term that was heard of.</param>
/// <param name="Epoch">The newest epoch of an ephemeral partition that was heard of; 0 of others.</param>
/// <param name="IsHearsay">The leader was named by a refusal and not by a map.</param>
internal readonly record struct PartitionRoute(int LeaderNodeId, ulong Term, ulong Epoch = 0, bool IsHearsay = false);
