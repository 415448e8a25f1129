using System.Net.Security;
using System.Security.Cryptography.X509Certificates;
using Kahuna.Client.Wire.Grpc;
using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Certificates;

namespace Kahuna.Tests.Api;

/// <summary>Three nodes in this process, shared by the tests of a collection, and channels to them.</summary>
public sealed class ThreeNodes : IAsyncLifetime
{
    private readonly List<GrpcChannel> _channels = [];

    internal EmbeddedCluster Cluster { get; private set; } = null!;

    /// <summary>A channel to the node that leads.</summary>
    internal GrpcChannel Leader => _channels[LeaderIndex];

    /// <summary>A channel to a node that does not lead.</summary>
    internal GrpcChannel Follower => _channels[(LeaderIndex + 1) % 3];

    /// <summary>A channel to a node.</summary>
    internal GrpcChannel Channel(int index) => _channels[index];

    /// <summary>How channels to the nodes are made.</summary>
    internal GrpcChannelOptions Options { get; private set; } = null!;

    internal int LeaderIndex => Math.Max(0, Cluster.Nodes[0].View.Status(0).Leader.Value - 1);

    public async Task InitializeAsync()
    {
        Cluster = await EmbeddedCluster.StartAsync(3);
        X509Certificate2Collection roots = [];
        roots.ImportFromPemFile(Path.Combine(DevelopmentCertificates.Directory(), DevelopmentCertificates.CaFile));
        Options = new GrpcChannelOptions
        {
            Tls = new SslClientAuthenticationOptions
            {
                CertificateChainPolicy = new X509ChainPolicy
                {
                    TrustMode = X509ChainTrustMode.CustomRootTrust,
                    RevocationMode = X509RevocationMode.NoCheck,
                    CustomTrustStore = { roots[0] },
                },
            },
        };
        _channels.AddRange(Cluster.Nodes.Select(node => new GrpcChannel(node.Options.Advertise, Options)));
    }

    public async Task DisposeAsync()
    {
        foreach (GrpcChannel channel in _channels)
        {
            await channel.DisposeAsync();
        }

        await Cluster.DisposeAsync();
    }
}

[CollectionDefinition(nameof(ThreeNodesCollection))]
public sealed class ThreeNodesCollection : ICollectionFixture<ThreeNodes>;
