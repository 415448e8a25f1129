using Kahuna.Server.Cluster;
using Kahuna.Server.Hosting.Membership;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Partitions;
using Kahuna.Server.Transport;

namespace Kahuna.Server.Hosting;

/// <summary>What a node's options say of its links to the others. Stateless.</summary>
internal static class NodeLinks
{
    public static PeerLinksOptions OptionsOf(NodeOptions options, TlsSource tls, KnownMembers members, IFatalErrors fatalErrors) => new()
    {
        Self = options.NodeId,
        ClusterId = options.ClusterId,
        Partitions = options.Partitions,
        Secret = SecretOf(options),
        Peers = [.. options.Peers.Select(peer => new PeerAddress(peer.Id, peer.Address))],
        Tls = tls,
        Directory = members,
        FatalErrors = fatalErrors,
    };

    /// <summary>By which nodes of the cluster know each other's forwarded calls.</summary>
    public static NodePass PassOf(NodeOptions options) => new(SecretOf(options).Span);

    private static ReadOnlyMemory<byte> SecretOf(NodeOptions options) => options.ClusterSecretFile is { } file ? ClusterSecret.Read(file) : ReadOnlyMemory<byte>.Empty;
}
