using Kahuna.Server.Primitives;

namespace Kahuna.Server.Transport;

/// <summary>A node that has proven itself, and the data directory with which it did. Immutable.</summary>
internal readonly record struct ProvenPeer(NodeId Id, ulong DirectoryId);
