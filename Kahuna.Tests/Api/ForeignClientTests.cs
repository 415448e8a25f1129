using Kahuna.Server.Hosting.Certificates;
using Kahuna.Tests.Api.Grpc.Foreign;

namespace Kahuna.Tests.Api;

/// <summary>
/// gRPC implementations that are not ours (python3-grpcio, grpc-js) against the shipped server, through a node that
/// leads and one that does not: every method of its services, health and reflection, deadlines, metadata, error
/// statuses, values of 1 MiB.
/// </summary>
[Collection(nameof(ThreeNodesCollection))]
public sealed class ForeignClientTests(ThreeNodes nodes)
{
    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task Every_check_of_the_client_in_Python_holds(bool throughLeader)
    {
        (int exitCode, string output) = await ForeignClient.RunPythonAsync(Node(throughLeader), await TrustedAsync());
        Assert.True(exitCode == 0, output);
    }

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task Every_check_of_the_client_for_Node_holds(bool throughLeader)
    {
        (int exitCode, string output) = await ForeignClient.RunNodeAsync(Node(throughLeader), await TrustedAsync());
        Assert.True(exitCode == 0, output);
    }

    private static Task<string> TrustedAsync() =>
        File.ReadAllTextAsync(Path.Combine(DevelopmentCertificates.Directory(), DevelopmentCertificates.CaFile));

    private Uri Node(bool throughLeader) =>
        nodes.Cluster.Nodes[throughLeader ? nodes.LeaderIndex : (nodes.LeaderIndex + 1) % 3].Options.Advertise;
}
