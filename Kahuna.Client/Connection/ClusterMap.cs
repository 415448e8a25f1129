using Kahuna.Client.Wire.Protos;

namespace Kahuna.Client.Connection;

/// <summary>
/// What is known of the cluster: its members, and for each partition the leader and the newest term. Put together from the
/// views of several nodes, of which some may be out of date: a newer term always wins, an older one never. Immutable.
/// </summary>
internal sealed class ClusterMap
{
    private readonly PartitionRoute[] _partitions;

    private ClusterMap(string clusterId, string serverVersion, IReadOnlyList<MemberNode> nodes, PartitionRoute[] partitions)
    {
        ClusterId = clusterId;
        ServerVersion = serverVersion;
        Nodes = nodes;
        _partitions = partitions;
    }

    /// <summary>Nothing is known.</summary>
    public static ClusterMap Empty { get; } = new("", "", [], []);

    public string ClusterId { get; }

    public string ServerVersion { get; }

    public IReadOnlyList<MemberNode> Nodes { get; }

    /// <summary>Number of partitions; 0 when nothing is known.</summary>
    public int Partitions => _partitions.Length;

    public PartitionRoute this[int partition] => _partitions[partition];

    /// <summary>This map with the view of one node worked in.</summary>
    /// <exception cref="InvalidDataException">The view makes no sense.</exception>
    public ClusterMap Merge(DescribeClusterResponse view)
    {
        PartitionRoute[] merged = new PartitionRoute[view.Partitions.Count];
        foreach (PartitionLeader seen in view.Partitions)
        {
            if (seen.Partition >= merged.Length)
            {
                throw new InvalidDataException(FormattableString.Invariant($"the node describes partition {seen.Partition} of {merged.Length}"));
            }

            PartitionRoute known = merged.Length == Partitions ? _partitions[seen.Partition] : default;
            PartitionRoute reported = new((int)seen.LeaderNodeId, seen.Term);

            // A term has one leader, so that the first report of it stands; hearsay gives way to any report.
            bool isOpen = known.LeaderNodeId == 0 || known.IsHearsay;
            bool isNews = reported.Term > known.Term || (reported.Term == known.Term && reported.LeaderNodeId != 0 && isOpen);
            merged[seen.Partition] = isNews ? reported : known;
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
        return new ClusterMap(view.ClusterId, view.ServerVersion, nodes, merged);
    }

    /// <summary>This map with the leader that a refusal named, which comes without a term; 0: none is known any more.</summary>
    public ClusterMap WithLeader(int partition, int nodeId)
    {
        PartitionRoute[] changed = [.. _partitions];
        changed[partition] = changed[partition] with { LeaderNodeId = nodeId, IsHearsay = true };
        return new ClusterMap(ClusterId, ServerVersion, Nodes, changed);
    }
}

/// <summary>A member of the cluster as a map names it. A value.</summary>
internal readonly record struct MemberNode(int Id, Uri Endpoint);

/// <summary>Where a partition's operations go. A value.</summary>
/// <param name="LeaderNodeId">The leader; 0 when none is known.</param>
/// <param name="Term">The newest term that was heard of.</param>
/// <param name="IsHearsay">The leader was named by a refusal and not by a map.</param>
internal readonly record struct PartitionRoute(int LeaderNodeId, ulong Term, bool IsHearsay = false);
