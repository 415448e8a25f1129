using System.Diagnostics;
using System.Text.Json;
using Kahuna.Client;
using Xunit.Abstractions;

namespace Kahuna.Tests.Cluster;

/// <summary>How a server process ends: gracefully on SIGTERM, and at once with one line when it cannot serve.</summary>
[Collection(ClusterCollection.Name)]
public sealed class ShutdownTests(ITestOutputHelper output)
{
    private static readonly TimeSpan s_within = LastNet.Span;

    [Fact]
    public async Task Stopped_leader_hands_over_and_finishes_what_it_accepted()
    {
        await using ProcessCluster cluster = new(output);
        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            await using KahunaClient client = cluster.Connect(LastNet.Call);
            await using RecordedLoad load = new(client);
            await load.MakeProgressAsync(RecordedLoad.Now, s_within);
            await Task.Delay(TimeSpan.FromSeconds(1));
            NodeProcess leader = await cluster.LeaderAsync();
            TimeSpan moment = RecordedLoad.Now;
            Assert.Equal(0, leader.Stop());
            TimeSpan took = RecordedLoad.Now - moment;

            Assert.NotEqual(leader.Id, (await cluster.LeaderAsync(otherThan: leader)).Id);
            await load.MakeProgressAsync(RecordedLoad.Now, s_within);
            await load.StopAsync();
            string text = await load.CheckAsync();
            output.WriteLine($"Checked: SIGTERM to the leader, exit code 0 after {took.TotalSeconds:0.0} s: {text}");
            Assert.DoesNotContain(load.Failures, failure => failure.Error.Outcome == OperationOutcome.Unknown);
        });
    }

    [Fact]
    public async Task Second_process_on_a_data_directory_is_refused()
    {
        await using ProcessCluster cluster = new(output, nodes: 1);
        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            NodeProcess first = cluster.Nodes[0];
            (int exitCode, string[] lines) = RunServer(cluster, "--data", first.DataDirectory, "--listen", $"https://127.0.0.1:{ProcessCluster.FreePorts(1)[0]}");
            Assert.NotEqual(0, exitCode);
            Assert.Contains(lines, line => line.Contains(first.DataDirectory, StringComparison.Ordinal));
            Assert.True(first.IsRunning);
            await using KahunaClient client = cluster.Connect(LastNet.Call);
            await client.KeyValues.SetAsync("still", "there");
            Assert.Equal("there", (await client.KeyValues.GetAsync("still")).Value.AsString());
        });
    }

    [Fact]
    public async Task Port_in_use_is_one_line()
    {
        await using ProcessCluster cluster = new(output, nodes: 1);
        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            (int exitCode, string[] lines) = RunServer(
                cluster, "--data", cluster.ScratchFile("other"), "--listen", cluster.Nodes[0].Url);
            Assert.Equal(1, exitCode);
            string line = Assert.Single(lines, line => !line.Contains("data in", StringComparison.Ordinal));
            Assert.Contains("address already in use", line, StringComparison.Ordinal);
        });
    }

    [Fact]
    public async Task Json_log_has_the_fields_of_an_event()
    {
        await using ProcessCluster cluster = new(output, 3, "--log-format", "json");
        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            NodeProcess leader = await cluster.LeaderAsync();
            Assert.Equal(0, leader.Stop());
            JsonElement[] events =
            [
                .. leader
                    .Log()
                    .Split('\n')
                    .Where(line => line.StartsWith('{'))
                    .Select(line => JsonDocument.Parse(line).RootElement),
            ];
            JsonElement[] leads =
            [
                .. events.Where(line => line.GetProperty("EventId").GetInt32() == 7)
                    .Select(line => line.GetProperty("State")),
            ];
            Assert.Contains(leads, state =>
                state.GetProperty("Leader").ToString() == $"{leader.Id}" && state.GetProperty("Term").GetUInt64() > 0);
            Assert.Contains(events, line =>
                line.GetProperty("EventId").GetInt32() == 10
                    && line.GetProperty("State").GetProperty("Reached").GetInt32() >= 2);
        });
    }

    [Theory]
    [InlineData("0.0.0.0", true)]
    [InlineData("127.0.0.1", false)]
    public async Task A_node_says_where_it_listens_and_whether_that_is_open(string host, bool open)
    {
        await using ProcessCluster cluster = new(output, nodes: 1);
        int port = ProcessCluster.FreePorts(1)[0];
        string log = cluster.ScratchFile("start.log");
        string[] options =
        [
            "--data", cluster.ScratchFile("data"), "--auth", "none",
            "--listen", $"https://{host}:{port}", "--advertise", $"https://127.0.0.1:{port}",
        ];
        using Process process = Process.Start(NodeProcess.StartInfo(cluster.CertificateDirectory, log, options))!;
        try
        {
            await Eventually.TrueAsync(s_within, "the node has started", () =>
                Task.FromResult(
                    File.Exists(log) && File.ReadAllText(log).Contains("; listens on ", StringComparison.Ordinal)));
            Signal.Send(process.Id, Signal.Terminate);
            Assert.True(process.WaitForExit(s_within));
        }
        finally
        {
            process.Kill();
        }

        string lines = await File.ReadAllTextAsync(log);
        Assert.Contains($"listens on {host}:{port};", lines, StringComparison.Ordinal);
        Assert.Equal(
            open,
            lines.Contains(
                $"Clients are not authenticated: anyone who can reach {host}:{port} ", StringComparison.Ordinal));
    }

    [Theory]
    [InlineData("--no-such-option", "1")]
    [InlineData("--listen", "nowhere")]
    [InlineData("--peers", "1=https://127.0.0.1:8082")]
    [InlineData("--log-level", "loud")]
    public async Task Wrong_option_is_refused_with_one_line(string option, string value)
    {
        await using ProcessCluster cluster = new(output, nodes: 1);
        (int exitCode, string[] lines) = RunServer(cluster, "--data", cluster.ScratchFile("data"), option, value);
        Assert.NotEqual(0, exitCode);
        Assert.Contains(option.TrimStart('-'), Assert.Single(lines), StringComparison.OrdinalIgnoreCase);
    }

    private static (int ExitCode, string[] Lines) RunServer(ProcessCluster cluster, params string[] options)
    {
        string log = cluster.ScratchFile("second.log");
        using Process process = Process.Start(NodeProcess.StartInfo(cluster.CertificateDirectory, log, options))!;
        if (!process.WaitForExit(s_within))
        {
            process.Kill();
            throw new TimeoutException($"kahuna-server {string.Join(' ', options)} did not end.");
        }

        return (process.ExitCode, File.ReadAllLines(log));
    }
}
