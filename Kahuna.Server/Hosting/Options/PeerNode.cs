using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting.Options;

/// <summary>
/// One node of the cluster in the options: its id, and the address by which clients and other nodes reach it.
/// Immutable.
/// </summary>
internal readonly record struct PeerNode(NodeId Id, Uri Address)
{
    public override string ToString() => $"{Id}={Address.GetLeftPart(UriPartial.Authority)}";
}
