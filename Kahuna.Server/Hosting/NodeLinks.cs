using Kahuna.Server.Cluster;
using Kahuna.Server.Hosting.Certificates;
using Kahuna.Server.Hosting.Membership;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Transport;

namespace Kahuna.Server.Hosting;

/// <summary>Derives the options of a node's links to its peers, and its identity there. Stateless.</summary>
internal static class NodeLinks
{
    /// <summary>What passes requests on to the other nodes.</summary>
    public static Forwarder ForwarderOf(NodeOptions options, NodeCredential credential, ILoggerFactory loggers) => new(
        options.Peers.Select(static peer => peer.Address),
        NodeCertificates.TrustedCaFile(options),
        credential,
        loggers);

    /// <summary>The identity of the cluster and of this node in it.</summary>
    public static ClusterIdentity IdentityOf(NodeOptions options) => new(
        options.ClusterId,
        options.NodeId,
        ProductVersion.Text,
        options.Partitions,
        [.. options.Peers.Select(peer => (peer.Id, peer.Address))]);

    /// <summary>The options of the links.</summary>
    /// <param name="options">The node's options.</param>
    /// <param name="tls">The node's certificate.</param>
    /// <param name="secrets">The cluster's secrets.</param>
    /// <param name="members">The record of the nodes' directories.</param>
    /// <param name="fatalErrors">Handles unexpected exceptions.</param>
    public static PeerLinksOptions OptionsOf(
        NodeOptions options, TlsSource tls, ClusterSecrets secrets, MemberRegistry members, IFatalErrors fatalErrors) =>
        new()
        {
            Features = options.Features,
            Self = options.NodeId,
            ClusterId = options.ClusterId,
            Partitions = options.Partitions,
            Secrets = secrets,
            Peers = [.. options.Peers.Select(peer => new PeerAddress(peer.Id, peer.Address))],
            Tls = tls,
            Directory = members,
            FatalErrors = fatalErrors,
        };
}
