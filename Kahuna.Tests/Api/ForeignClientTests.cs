using Kahuna.Server.Hosting.Certificates;
using Kahuna.Tests.Api.Grpc.Foreign;

namespace Kahuna.Tests.Api;

/// <summary>A gRPC implementation that is not ours (python3-grpcio) against the shipped server: all four kinds of calls, deadline, metadata, error status, a value of 1 MiB.</summary>
[Collection(nameof(ThreeNodesCollection))]
public sealed class ForeignClientTests(ThreeNodes nodes)
{
    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task EveryCheckHolds(bool throughLeader)
    {
        int node = throughLeader ? nodes.LeaderIndex : (nodes.LeaderIndex + 1) % 3;
        string authority = await File.ReadAllTextAsync(Path.Combine(DevelopmentCertificates.Directory(), DevelopmentCertificates.CaFile));
        (int exitCode, string output) = await ForeignClient.RunAsync(nodes.Cluster.Nodes[node].Options.Advertise, authority);
        Assert.True(exitCode == 0, output);
    }
}
