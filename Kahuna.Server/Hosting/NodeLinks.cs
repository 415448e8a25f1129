using System.Net;
using System.Security.Cryptography.X509Certificates;
using Kahuna.Client.Connection.Access;
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
    /// <param name="options">The node's options.</param>
    /// <param name="credential">Identifies this node there.</param>
    /// <param name="tls">The node's certificate, which belongs to that with <c>--peer-tls offer</c> or
    /// <c>mutual</c>.</param>
    /// <param name="loggers">Receives connection events.</param>
    public static Forwarder ForwarderOf(
        NodeOptions options, NodeCredential credential, TlsSource tls, ILoggerFactory loggers) => new(
        options.Peers.Select(static peer => peer.Address),
        NodeCertificates.TrustedCaFile(options),
        CredentialOf(options, credential, tls),
        loggers);

    /// <summary>What this node shows with its calls to other nodes: the secret, and its certificate if it may
    /// count.</summary>
    public static NodeCredential CredentialOf(NodeOptions options, NodeCredential credential, TlsSource tls) =>
        options.PeerTls == PeerTlsMode.Secret
            ? credential
            : credential.Showing(new CertificateSource(() => tls.Current.Certificate));

    /// <summary>Which certificates clients are asked for.</summary>
    /// <param name="options">The node's options.</param>
    /// <param name="userAuthorities">The authorities of users' certificates; null: there are none.</param>
    public static ClientCertificates CertificatesOf(
        NodeOptions options, Func<X509Certificate2Collection>? userAuthorities) => new()
        {
            UserAuthorities = userAuthorities,
            NodeHosts = options.PeerTls == PeerTlsMode.Secret
                ? []
                : [.. options.Peers.Select(static peer => PeerCertificate.HostOf(peer.Address)).Distinct()],
        };

    /// <summary>Limits the connections of each address; not those of this machine, and of nodes that link.</summary>
    public static AddressLimiter AddressesOf(NodeOptions options, PeerLinks links) =>
        new(options.ConnectionsPerAddress)
        {
            IsExempt = address => IPAddress.IsLoopback(address) || links.IsNodeAt(address),
            Refused = links.Crowded,
        };

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
            TlsMode = options.PeerTls,
            Directory = members,
            FatalErrors = fatalErrors,
        };
}
