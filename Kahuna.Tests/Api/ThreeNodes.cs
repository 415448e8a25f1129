using System.Net.Security;
using System.Security.Cryptography.X509Certificates;
using Grpc.Net.Client;
using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Certificates;
using Kahuna.Tests.Api.Grpc;

namespace Kahuna.Tests.Api;

/// <summary>Three nodes in this process, shared by the tests of a collection, and channels to them.</summary>
public class ThreeNodes : IAsyncLifetime
{
    private readonly List<GrpcChannel> _channels = [];
    private readonly X509Certificate2Collection _roots = [];

    internal EmbeddedCluster Cluster { get; private set; } = null!;

    private protected virtual int Partitions => 1;

    /// <summary>A channel to the node that leads.</summary>
    internal GrpcChannel Leader => _channels[LeaderIndex];

    /// <summary>A channel to a node that does not lead.</summary>
    internal GrpcChannel Follower => _channels[(LeaderIndex + 1) % 3];

    /// <summary>A channel to a node.</summary>
    internal GrpcChannel Channel(int index) => _channels[index];

    /// <summary>Another channel to a node that does not lead; the caller disposes it.</summary>
    internal GrpcChannel OpenFollower() => Open((LeaderIndex + 1) % 3);

    internal int LeaderIndex => Math.Max(0, Cluster.Nodes[0].View.Status(0).Leader.Value - 1);

    public async Task InitializeAsync()
    {
        Cluster = await EmbeddedCluster.StartAsync(
            3, configure: options => options with { Partitions = Partitions });
        _roots.ImportFromPemFile(Path.Combine(DevelopmentCertificates.Directory(), DevelopmentCertificates.CaFile));
        _channels.AddRange(Enumerable.Range(0, 3).Select(Open));
    }

    public async Task DisposeAsync()
    {
        foreach (GrpcChannel channel in _channels)
        {
            channel.Dispose();
        }

        await Cluster.DisposeAsync();
    }

    private GrpcChannel Open(int index) =>
        TestChannels.To(Cluster.Nodes[index].Options.Advertise, new SslClientAuthenticationOptions
        {
            CertificateChainPolicy = new X509ChainPolicy
            {
                TrustMode = X509ChainTrustMode.CustomRootTrust,
                RevocationMode = X509RevocationMode.NoCheck,
                CustomTrustStore = { _roots[0] },
            },
        });
}

[CollectionDefinition(nameof(ThreeNodesCollection))]
public sealed class ThreeNodesCollection : ICollectionFixture<ThreeNodes>;

/// <summary>Three nodes with three partitions, whose leaders need not be the same node.</summary>
public sealed class ThreePartitions : ThreeNodes
{
    private protected override int Partitions => 3;
}

[CollectionDefinition(nameof(ThreePartitionsCollection))]
public sealed class ThreePartitionsCollection : ICollectionFixture<ThreePartitions>;
