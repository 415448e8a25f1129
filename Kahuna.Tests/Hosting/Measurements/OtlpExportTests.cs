using System.Net;
using System.Net.Sockets;
using System.Text.RegularExpressions;
using Kahuna.Client;
using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Options;
using Kahuna.Tests.Client;

namespace Kahuna.Tests.Hosting.Measurements;

/// <summary>
/// The metrics are sent to a receiver of the OpenTelemetry protocol, and one that fails does no harm.
/// </summary>
public sealed class OtlpExportTests
{
    [Fact]
    public async Task A_receiver_gets_the_metrics_and_the_histograms()
    {
        await using OtlpReceiver receiver = await OtlpReceiver.StartAsync();
        EmbeddedCluster cluster = await StartAsync(receiver.Address);
        await using (KahunaClient client = PatientClient.Connect(cluster.Endpoints))
        {
            await client.KeyValues.SetAsync("a/b", "1");
        }

        // A node that stops sends its last figures.
        await cluster.DisposeAsync();
        foreach (string expected in (string[])
            [
                "kahuna-server", "kahuna.node.ready", "kahuna.operations", "kahuna.operation.duration.bucket",
                "kahuna.log.sync.duration.sum", "kahuna.raft.term", "dotnet.gc.collections",
            ])
        {
            Assert.Contains(expected, receiver.Received, StringComparison.Ordinal);
        }
    }

    [Fact]
    public async Task A_receiver_gets_the_traces_of_operations_once_for_each_node()
    {
        await using OtlpReceiver receiver = await OtlpReceiver.StartAsync();
        EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(3, configure: options => options with
        {
            Metrics = new MetricsOptions { OtlpEndpoint = receiver.Address, TraceRatio = 1 },
        }).WaitAsync(Wait.Longest);
        await using (KahunaClient client = PatientClient.Connect(cluster.Endpoints))
        {
            await client.KeyValues.SetAsync("a/b", "1");
            await Wait.UntilAsync(() => receiver.Received.Contains("db.operation.name", StringComparison.Ordinal));
        }

        await cluster.DisposeAsync();
        foreach (string expected in (string[])
            ["kahuna.node.id", "db.operation.name", "proposed", "committed", "applied", "answered"])
        {
            Assert.Contains(expected, receiver.Received, StringComparison.Ordinal);
        }

        // The providers of the other two nodes have seen the activities, too. In Protobuf, a span begins with its ids.
        string[] spans =
        [
            .. Regex.Matches(receiver.Received, "\\x0a\\x10[\\s\\S]{16}\\x12\\x08([\\s\\S]{8})")
                .Select(static span => span.Groups[1].Value),
        ];
        Assert.NotEmpty(spans);
        Assert.Equal(spans.Distinct(), spans);
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task A_receiver_that_is_not_there_or_reads_nothing_does_not_harm_the_node(bool listens)
    {
        using TcpListener receiver = new(IPAddress.Loopback, 0);
        receiver.Start();
        Uri address = new($"http://{receiver.LocalEndpoint}");
        if (!listens)
        {
            receiver.Stop();
        }

        EmbeddedCluster cluster = await StartAsync(address);
        await using (KahunaClient client = PatientClient.Connect(cluster.Endpoints))
        {
            await client.KeyValues.SetAsync("a/b", "1");
            Assert.Equal("1", (await client.KeyValues.GetAsync("a/b")).Value.AsString());
        }

        await cluster.DisposeAsync().AsTask().WaitAsync(Wait.Longest);
    }

    private static Task<EmbeddedCluster> StartAsync(Uri receiver) =>
        EmbeddedCluster.StartAsync(1, configure: options => options with
        {
            Metrics = new MetricsOptions { OtlpEndpoint = receiver, TraceRatio = 1 },
        }).WaitAsync(Wait.Longest);
}
