using Kahuna.Server.Primitives;

namespace Kahuna.Server.Transport;

/// <summary>A node of the cluster and where it listens. Immutable.</summary>
internal readonly record struct PeerAddress(NodeId Id, Uri Address);
