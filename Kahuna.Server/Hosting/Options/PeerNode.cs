using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting.Options;

/// <summary>One node of the cluster as the options name it: its id and the address at which clients and the other nodes reach it. Immutable.</summary>
internal readonly record struct PeerNode(NodeId Id, Uri Address)
{
    public override string ToString() => $"{Id}={Address.GetLeftPart(UriPartial.Authority)}";
}
