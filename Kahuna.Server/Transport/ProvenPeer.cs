using Kahuna.Server.Primitives;

namespace Kahuna.Server.Transport;

/// <summary>A node that has proven itself, and its data directory. Immutable.</summary>
internal readonly record struct ProvenPeer(NodeId Id, ulong DirectoryId);
