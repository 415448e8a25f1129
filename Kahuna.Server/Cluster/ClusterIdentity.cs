using Kahuna.Server.Primitives;

namespace Kahuna.Server.Cluster;

/// <summary>The properties of cluster and node that do not change while the node runs. Immutable.</summary>
/// <param name="ClusterId">Name of the cluster.</param>
/// <param name="Self">This node.</param>
/// <param name="Version">Version of the server.</param>
/// <param name="Partitions">Number of partitions.</param>
/// <param name="Nodes">All members with the endpoints they advertise, in order of their id.</param>
internal sealed record ClusterIdentity(
    string ClusterId, NodeId Self, string Version, int Partitions, IReadOnlyList<(NodeId Id, Uri Endpoint)> Nodes);
