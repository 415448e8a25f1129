using System.Net;
using System.Net.Sockets;
using System.Text.Json;
using Kahuna.Cli.Diagnosis;
using Kahuna.Cli.Errors;
using Kahuna.Client;
using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Options;
using Kahuna.Tests.Client;
using Kahuna.Tests.Hosting;

namespace Kahuna.Tests.Cli;

/// <summary><c>kahuna slow</c> on a cluster on which every operation is slow, and the times of stages.</summary>
public sealed class SlowCommandTests
{
    [Fact]
    public async Task Slow_operations_are_shown_and_silent_nodes_named()
    {
        using TemporaryDirectory directory = new();
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1, configure: static options => options
            with
        {
            Metrics = new MetricsOptions { SlowLogThreshold = TimeSpan.Zero },
        }).WaitAsync(Wait.Longest);
        CliTool tool = new()
        {
            Variables =
            {
                ["KAHUNA_ENDPOINTS"] = cluster.Endpoints,
                ["KAHUNA_CONFIG"] = directory.File("contexts.json", "{}"),
            },
        };
        const string Key = "slow/\u001b[31mred";
        await using (KahunaClient client = KahunaClient.Connect(cluster.Endpoints))
        {
            await client.KeyValues.SetAsync(Key, "1");
        }

        CliResult table = (await tool.RunAsync("slow", "--limit", "1000")).Done();
        table.Shows(@"slow/\x1b[31mred");
        table.Shows("REPLICATE");
        Assert.DoesNotContain('\u001b', table.Output);

        JsonElement all = (await tool.RunAsync("slow", "--limit", "1000", "-o", "json")).Done().Json;
        JsonElement set = all.EnumerateArray().First(
            static row => row.GetProperty("operation").GetString() == "set");
        Assert.Equal(Key, set.GetProperty("key").GetString());
        Assert.Equal("received", set.GetProperty("events")[0].GetProperty("name").GetString());

        // A bound socket that does not listen: nothing answers there, and nobody else can take the port.
        using Socket silent = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        silent.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        string node = $"https://127.0.0.1:{((IPEndPoint)silent.LocalEndPoint!).Port}";
        (await tool.RunAsync("slow", "--node", node)).Ended(ExitCode.Unavailable).Tells(node);
    }

    [Theory]
    [InlineData("proposed", 0.12)]
    [InlineData("persisted", 0.78)]
    [InlineData("committed", 0.0)]
    [InlineData("applied", 0.1)]
    [InlineData("received", null)]
    [InlineData("confirmed", null)]
    public void A_stage_is_the_time_since_the_latest_event_before(string stage, double? expected)
    {
        // The majority had the entry before the own disk did: the wait for it took no time of its own.
        SlowOperation operation = Told("""
            {"totalUs":1500,"events":[{"name":"received","us":0},{"name":"proposed","us":120},
            {"name":"persisted","us":900},{"name":"committed","us":700},{"name":"applied","us":1000}]}
            """);
        Assert.Equal(expected, operation.StageMs(stage));
        Assert.Equal(1.5, operation.TotalMs);
    }

    [Theory]
    [InlineData("{}")]
    [InlineData("""{"events":7,"totalUs":"x","key":7,"at":"then"}""")]
    [InlineData("""{"events":[7,{"name":"proposed"},{"us":1},{"name":"proposed","us":"1"}],"totalUs":1e99}""")]
    public void What_a_node_says_in_another_form_is_not_there(string told)
    {
        SlowOperation operation = Told(told);
        Assert.Null(operation.StageMs("proposed"));
        Assert.Null(operation.TotalMs);
        Assert.Null(operation.Key);
        Assert.Null(operation.At);
    }

    private static SlowOperation Told(string json)
    {
        using JsonDocument document = JsonDocument.Parse(json);
        return new SlowOperation(1, document.RootElement.Clone());
    }
}
