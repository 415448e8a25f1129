using Kahuna.Wire.Protos;
using Kahuna.Wire.Routing;

namespace Kahuna.Client.Connection;

/// <summary>
/// The known members, and the leader and newest term of each partition and durability. Merges the views of several
/// nodes, some of which may be outdated: a newer term always wins, an older one never does. Immutable.
/// </summary>
internal sealed class ClusterMap
{
    private readonly PartitionRoute[] _routes;

    private ClusterMap(
        string clusterId,
        string serverVersion,
        IReadOnlyList<MemberNode> nodes,
        int partitions,
        PartitionRoute[] routes)
    {
        ClusterId = clusterId;
        ServerVersion = serverVersion;
        Nodes = nodes;
        Partitions = partitions;
        _routes = routes;
    }

    /// <summary>The map before the first view.</summary>
    public static ClusterMap Empty { get; } = new("", "", [], 0, []);

    public string ClusterId { get; }

    public string ServerVersion { get; }

    public IReadOnlyList<MemberNode> Nodes { get; }

    /// <summary>Number of partitions; 0 before the first view.</summary>
    public int Partitions { get; }

    /// <summary>
    /// Number of routes: one per partition for persistent keys, followed by one per partition for ephemeral keys if the
    /// cluster serves them.
    /// </summary>
    public int Routes => _routes.Length;

    public PartitionRoute this[int route] => _routes[route];

    /// <summary>The route of a key; -1 when none is known.</summary>
    public int RouteOf(ReadOnlySpan<byte> key, Durability durability) =>
        Partitions == 0 ? -1 : RouteOf(KeyRouting.Partition(key, Partitions), durability);

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
        return new ClusterMap(view.ClusterId, view.ServerVersion, nodes, partitions, merged);
    }

    /// <summary>Replaces a leader by the one that a refusal named, which comes without a term; 0 removes it.</summary>
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
