using System.Net;
using System.Net.Sockets;
using System.Text;
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
        await using EmbeddedCluster cluster = await StartAsync(1);
        CliTool tool = ToolOf(cluster, directory);
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

    [Fact]
    public async Task A_silent_node_of_three_is_named_in_one_line_and_the_others_are_shown()
    {
        using TemporaryDirectory directory = new();
        await using EmbeddedCluster cluster = await StartAsync(3);
        CliTool tool = ToolOf(cluster, directory);
        await using (KahunaClient client = KahunaClient.Connect(cluster.Endpoints))
        {
            await client.KeyValues.SetAsync("a", "1");
        }

        Uri node = cluster.Nodes[2].Options.Advertise;
        await cluster.Nodes[2].DisposeAsync();
        await ShowsOthersAsync(tool, node);

        // Now its port takes connections, and nothing is ever said on them.
        using TcpListener hole = new(IPAddress.Loopback, node.Port);
        hole.Start();
        await ShowsOthersAsync(tool, node);
    }

    [Fact]
    public async Task Watched_each_operation_is_told_once_by_node_and_number_until_it_is_interrupted()
    {
        using TemporaryDirectory directory = new();
        await using EmbeddedCluster cluster = await StartAsync(1);
        CliTool tool = ToolOf(cluster, directory);
        await using KahunaClient client = KahunaClient.Connect(cluster.Endpoints);
        await client.KeyValues.SetAsync("before", "1");
        using CancellationTokenSource interrupt = new();
        using Lines output = new();
        Task<(int ExitCode, StringWriter Error)> watch = tool.RunAsync(
            ["slow", "--watch", "--interval", "10ms", "--limit", "1000", "-o", "jsonl"], [], output, interrupt.Token);
        await output.UntilAsync("before");
        await client.KeyValues.SetAsync("after", "1");
        await output.UntilAsync("after");
        await interrupt.CancelAsync();
        Assert.Equal(ExitCode.Interrupted, (await watch.WaitAsync(LastNet.Span)).ExitCode);
        string[] told =
        [
            .. output.All.Select(static line => JsonDocument.Parse(line).RootElement).Select(
                static row => $"{row.GetProperty("node")}/{row.GetProperty("id")}"),
        ];
        Assert.Equal(told.Distinct(), told);
    }

    [Fact]
    public async Task Watched_on_a_terminal_the_table_is_drawn_anew()
    {
        using TemporaryDirectory directory = new();
        await using EmbeddedCluster cluster = await StartAsync(1);
        CliTool terminal = ToolOf(cluster, directory, isTerminal: true);
        await using KahunaClient client = KahunaClient.Connect(cluster.Endpoints);
        await client.KeyValues.SetAsync("a", "1");
        string[] words = ["slow", "--watch", "--interval", "10ms", "--count", "3"];
        string drawn = (await terminal.RunAsync(words)).Done().Output;
        Assert.Equal(3, drawn.Split("\u001b[H\u001b[2J").Length - 1);
        Assert.Equal(3, drawn.Split("REPLICATE").Length - 1);
        (await terminal.RunAsync("slow", "--count", "3")).Ended(ExitCode.Usage).Tells("--watch");
        (await terminal.RunAsync([.. words, "-o", "json"])).Ended(ExitCode.Usage).Tells("jsonl");
    }

    [Fact]
    public void Numbers_of_a_restarted_node_are_new_and_lost_ones_are_counted()
    {
        SlowNews news = new();
        Assert.Equal([1, 2], Told(news, (1, 10), (2, 20)));
        Assert.Equal([], Told(news, (1, 10), (2, 20)));
        Assert.Equal([3], Told(news, (2, 20), (3, 30)));
        Assert.Equal([6, 7], Told(news, (6, 40), (7, 41)));
        Assert.Equal(2, news.Missed);
        Assert.Equal([1], Told(news, (1, 45)));
        Assert.Equal([1, 2], Told(news, (1, 50), (2, 51)));
        Assert.Equal(0, news.Missed);
        Assert.Equal([], Told(news));
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

    private static Task<EmbeddedCluster> StartAsync(int nodes) => EmbeddedCluster.StartAsync(
        nodes,
        configure: static options => options with
        {
            Metrics = new MetricsOptions { SlowLogThreshold = TimeSpan.Zero },
        }).WaitAsync(Wait.Longest);

    private static CliTool ToolOf(EmbeddedCluster cluster, TemporaryDirectory directory, bool isTerminal = false) =>
        new()
        {
            IsTerminal = isTerminal,
            Variables =
            {
                ["KAHUNA_ENDPOINTS"] = cluster.Endpoints,
                ["KAHUNA_CONTEXTS"] = directory.File($"{Guid.NewGuid():N}.json", "{}"),
            },
        };

    /// <summary>A busy node may be silent for as long as a connection may take; then it is asked again.</summary>
    private static async Task ShowsOthersAsync(CliTool tool, Uri silent)
    {
        string name = silent.GetLeftPart(UriPartial.Authority);
        await Wait.UntilAsync(async () =>
        {
            CliResult result = await tool.RunAsync("slow", "--limit", "1000", "-o", "json");
            if (result.ExitCode != ExitCode.Done || result.Error.Count(static letter => letter == '\n') != 1)
            {
                return false;
            }

            result.Tells($"{name} told nothing: ");
            Assert.Contains(
                result.Json.EnumerateArray(), static row => row.GetProperty("operation").GetString() == "set");
            return true;
        });
    }

    private static long[] Told(SlowNews news, params (long Id, int Second)[] operations)
    {
        string rows = string.Join(',', operations.Select(static operation =>
            $$"""{"id":{{operation.Id}},"at":"2026-11-28T00:00:{{operation.Second:00}}Z"}"""));
        using JsonDocument document = JsonDocument.Parse($$"""{"node":1,"operations":[{{rows}}]}""");
        NodeAnswer answer = new(new Uri("https://a:8082")) { Root = document.RootElement.Clone() };
        return [.. news.Of([answer]).Select(static operation => operation.Id!.Value)];
    }

    private static SlowOperation Told(string json)
    {
        using JsonDocument document = JsonDocument.Parse(json);
        return new SlowOperation(1, document.RootElement.Clone());
    }

    /// <summary>Lines that are written, and read at the same time.</summary>
    private sealed class Lines : MemoryStream
    {
        private readonly Lock _lock = new();

        public string[] All
        {
            get
            {
                lock (_lock)
                {
                    return Encoding.UTF8.GetString(ToArray()).Split('\n', StringSplitOptions.RemoveEmptyEntries);
                }
            }
        }

        public Task UntilAsync(string key) => Wait.UntilAsync(
            () => All.Any(line => line.Contains($"\"key\":\"{key}\"", StringComparison.Ordinal)));

        public override void Write(byte[] buffer, int offset, int count)
        {
            lock (_lock)
            {
                base.Write(buffer, offset, count);
            }
        }
    }
}
