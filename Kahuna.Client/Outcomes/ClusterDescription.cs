namespace Kahuna.Client.Outcomes;

/// <summary>The cluster as the connected nodes report it at one moment. Immutable.</summary>
/// <param name="ClusterId">Identity of the cluster; it does not change while the cluster keeps its data.</param>
/// <param name="ServerVersion">Product version of the node that answered last.</param>
/// <param name="Nodes">Every member, by node id.</param>
/// <param name="Partitions">
/// The groups of persistent keys, by partition number, which equals the index. The groups of ephemeral keys have
/// leaders of their own, which are not listed.
/// </param>
public sealed record ClusterDescription(
    string ClusterId,
    string ServerVersion,
    IReadOnlyList<NodeDescription> Nodes,
    IReadOnlyList<PartitionDescription> Partitions)
{
    /// <summary>
    /// The partitions of which the connected nodes know no leader, as during an election, or while no majority of the
    /// nodes can talk to each other: a leader without a majority gives up within a second. Empty for a cluster that
    /// serves requests.
    /// </summary>
    public IReadOnlyList<int> LeaderlessPartitions =>
    [
        .. from partition in Partitions where partition.LeaderNodeId is null select partition.Number,
    ];
}

/// <summary>One member of the cluster. Immutable.</summary>
/// <param name="Id">Node id, 1 or greater.</param>
/// <param name="Endpoint">The address that the node advertises to clients.</param>
/// <param name="IsConnected">True when this client has an open stream to the node.</param>
public sealed record NodeDescription(int Id, Uri Endpoint, bool IsConnected);

/// <summary>One partition and its leader. Immutable.</summary>
/// <param name="Number">0 to the number of partitions less 1.</param>
/// <param name="LeaderNodeId">The leader's node id; null while none is known.</param>
/// <param name="Term">The newest Raft term that a connected node has reported.</param>
public sealed record PartitionDescription(int Number, int? LeaderNodeId, long Term);
