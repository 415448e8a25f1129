using System.Net.Security;
using Grpc.Net.Client;
using Kahuna.Client;
using Kahuna.Tests.Api.Grpc;
using Xunit.Abstractions;

namespace Kahuna.Tests.Cluster;

/// <summary>
/// More connections and more streams than the server has room for: some are refused, those who were there are served,
/// and the node lives on.
/// </summary>
[Collection(ClusterCollection.Name)]
public sealed class ServerFloodTests(ITestOutputHelper output)
{
    private const int Descriptors = 320;
    private const int Connections = 400;

    private static readonly TimeSpan s_patience = LastNet.Span;

    [Fact]
    public async Task Node_of_320_descriptors_outlives_400_held_connections()
    {
        await using ProcessCluster cluster = new(output, nodes: 1);
        cluster.Nodes[0].Descriptors = Descriptors;
        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            Uri address = new(cluster.Nodes[0].Url);
            await using KahunaClient early = cluster.Connect(LastNet.Call);
            await early.KeyValues.SetAsync("flood/before", "kept");

            SslStream?[] connections = await Task.WhenAll(
                Enumerable.Range(0, Connections).Select(_ => FloodClient.ConnectAsync(address)))
                .WaitAsync(s_patience);
            int kept = connections.Count(connection => connection is not null);
            output.WriteLine(
                $"Checked: {Connections} connections to a node of {Descriptors} descriptors, {kept} kept, "
                    + $"{Connections - kept} refused");
            Assert.InRange(kept, 10, Descriptors - 1);

            // Who was there before is served during the flood, writes to disk included.
            await early.KeyValues.SetAsync("flood/during", "kept");
            Assert.True(cluster.Nodes[0].IsRunning);
            foreach (SslStream? connection in connections)
            {
                connection?.Dispose();
            }

            await FloodClient.ServesAgainAsync(address);
            Assert.Equal("kept", (await early.KeyValues.GetAsync("flood/before")).Value.AsString());
            Assert.Equal("kept", (await early.KeyValues.GetAsync("flood/during")).Value.AsString());
            Assert.Equal(0, cluster.Nodes[0].Stop());
        });
    }

    [Fact]
    public async Task Node_refuses_streams_past_its_limit_and_serves_others()
    {
        await using ProcessCluster cluster = new(output, nodes: 1);
        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            Uri address = new(cluster.Nodes[0].Url);
            await using KahunaClient other = cluster.Connect(LastNet.Call);
            await other.KeyValues.SetAsync("flood/before", "kept");
            Task refused = FloodClient.OpenStreamsRudelyAsync(address, "/kahuna.v1.Cluster/Exchange", streams: 20_000);
            await other.KeyValues.SetAsync("flood/during", "kept");
            await refused.WaitAsync(s_patience);
            using GrpcChannel late = FloodClient.ChannelTo(address);
            await FloodClient.DescribeAsync(late);
            Assert.Equal("kept", (await other.KeyValues.GetAsync("flood/during")).Value.AsString());
            Assert.Equal(0, cluster.Nodes[0].Stop());
        });
    }
}
