namespace Kahuna.Client;

/// <summary>The cluster as the client sees it at one moment: put together from what the connected nodes report. Immutable.</summary>
/// <param name="ClusterId">Identity of the cluster; it never changes while its data live.</param>
/// <param name="ServerVersion">Product version of the node that answered last.</param>
/// <param name="Nodes">Every member, by node id.</param>
/// <param name="Partitions">Every partition in order of its number, which is its index here: its group of persistent keys. Those of ephemeral keys have leaders of their own, which are not told.</param>
public sealed record ClusterDescription(string ClusterId, string ServerVersion, IReadOnlyList<NodeDescription> Nodes, IReadOnlyList<PartitionDescription> Partitions);

/// <summary>One member of the cluster. Immutable.</summary>
/// <param name="Id">Node id, 1 or greater.</param>
/// <param name="Endpoint">The address that the node advertises to clients.</param>
/// <param name="IsConnected">This client has an open stream to it.</param>
public sealed record NodeDescription(int Id, Uri Endpoint, bool IsConnected);

/// <summary>One partition and its leader. Immutable.</summary>
/// <param name="Number">0 to the number of partitions - 1.</param>
/// <param name="LeaderNodeId">The leading node's id, or null while none is known.</param>
/// <param name="Term">The newest Raft term that a connected node has reported.</param>
public sealed record PartitionDescription(int Number, int? LeaderNodeId, long Term);
