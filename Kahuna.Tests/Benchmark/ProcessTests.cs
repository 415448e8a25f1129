using System.Diagnostics;
using System.Net;
using System.Net.Sockets;

namespace Kahuna.Tests.Benchmark;

/// <summary>The tool as a process: exit codes, clean standard output, signals.</summary>
public sealed class ProcessTests
{
    [Theory]
    [InlineData("--help", 0)]
    [InlineData("--version", 0)]
    [InlineData("--no-such-option", 1)]
    [InlineData("-c https://127.0.0.1:8082 --duration never", 1)]
    public async Task Exit_code_of_help_version_and_bad_usage(string arguments, int expected)
    {
        using BenchProcess process = BenchProcess.StartTool(arguments);
        BenchOutcome outcome = await process.WaitAsync();
        Assert.Equal(expected, outcome.ExitCode);
        Assert.Equal(expected == 0 ? 0 : 1, outcome.ErrorLines.Length);
        Assert.Equal(expected == 0, outcome.Output.Length > 0);
    }

    [Fact]
    public async Task Json_on_standard_output_is_nothing_but_json()
    {
        await using FakeRedisServer server = new();
        using BenchProcess process = BenchProcess.StartTool(
            $"-c {server.Endpoint} --target redis --duration 2 --warmup 0.2 --key-space 100 --format json");
        BenchOutcome outcome = await process.WaitAsync();
        Assert.Equal(0, outcome.ExitCode);
        Assert.StartsWith("{", outcome.Output, StringComparison.Ordinal);
        Assert.True(outcome.Json.GetProperty("aggregate").GetProperty("count").GetInt64() > 0);
        Assert.True(outcome.Json.GetProperty("aggregate").GetProperty("p99Ms").GetDouble() > 0);
        Assert.Contains("Running measurement for 2s…", outcome.Error, StringComparison.Ordinal);
        Assert.Contains("TOTAL", outcome.Error, StringComparison.Ordinal);
        Assert.DoesNotContain("in flight", outcome.Error, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Csv_is_clean_and_invariant_under_a_culture_with_a_decimal_comma()
    {
        await using FakeRedisServer server = new();
        ProcessStartInfo start = new(
            "dotnet",
            [
                Path.Combine(AppContext.BaseDirectory, "kahuna-bench.dll"),
                "-c",
                server.Endpoint,
                "--target",
                "redis",
                "--duration",
                "5",
                "--warmup",
                "0",
                "--format",
                "csv",
                "--key-space",
                "50",
            ]);
        start.Environment["LANG"] = "de_DE.UTF-8";
        start.Environment["LC_ALL"] = "de_DE.UTF-8";
        using BenchProcess process = new(start);
        BenchOutcome outcome = await process.WaitAsync();
        Assert.Equal(0, outcome.ExitCode);
        string[] lines = outcome.Output.Split('\n', StringSplitOptions.RemoveEmptyEntries);
        Assert.Equal(
            "Operation,Count,Rps,P50Ms,P90Ms,P95Ms,P99Ms,P999Ms,MaxMs,MeanMs,Errors,Timeouts,Misses", lines[0]);
        Assert.Equal(["get", "set", "TOTAL"], lines.Skip(1).Select(line => line.Split(',')[0]));
        Assert.All(lines.Skip(1), line => Assert.Matches(@"^\w+,\d+,\d+\.\d{3},(\d+\.\d{3},){7}\d+,\d+,\d+$", line));
        Assert.Matches(@"\d\.\d{3}ms", outcome.Error);
    }

    [Fact]
    public async Task Files_get_the_report_and_the_histograms()
    {
        await using FakeRedisServer server = new();
        string folder = Directory.CreateTempSubdirectory("kahuna-bench-test-").FullName;
        try
        {
            string json = Path.Combine(folder, "report.json");
            string hlog = Path.Combine(folder, "report.hlog");
            using BenchProcess process = BenchProcess.StartTool(
                $"-c {server.Endpoint} --target redis --workload set --duration 5 --warmup 0 --format json "
                    + $"--output {json} --hlog {hlog}");
            BenchOutcome outcome = await process.WaitAsync();
            Assert.Equal((0, string.Empty), (outcome.ExitCode, outcome.Output));
            Assert.StartsWith("{", await File.ReadAllTextAsync(json), StringComparison.Ordinal);
            Assert.Contains("Tag=set,0.000,", await File.ReadAllTextAsync(hlog), StringComparison.Ordinal);
        }
        finally
        {
            Directory.Delete(folder, recursive: true);
        }
    }

    [Fact]
    public async Task Ctrl_c_gives_the_partial_report_and_130()
    {
        await using FakeRedisServer server = new();
        using BenchProcess process = BenchProcess.StartToolInForeground(
            $"-c {server.Endpoint} --target redis --workload set --duration 3600 --warmup 0 --format json");
        await WaitUntilAsync(() => server.Commands > 5_000);

        // On a busy machine that many can have come before the first answer was taken.
        await Task.Delay(500);
        using (Process kill = Process.Start("kill", ["-INT", $"{process.Id}"]))
        {
            await kill.WaitForExitAsync();
        }

        // Far less than the run would take: a signal that is ignored fails here, with what the tool said.
        BenchOutcome outcome = await process.WaitAsync(TimeSpan.FromMinutes(3));
        Assert.Equal(130, outcome.ExitCode);
        Assert.True(outcome.Json.GetProperty("mode").GetProperty("interrupted").GetBoolean());
        Assert.True(outcome.Json.GetProperty("aggregate").GetProperty("count").GetInt64() > 0);
    }

    [Theory]
    [InlineData("https://127.0.0.1:{0}")]
    [InlineData("127.0.0.1:{0} --target redis")]
    [InlineData("http://127.0.0.1:{0} --target etcd")]
    public async Task Unreachable_cluster_gives_one_line_and_1_within_the_timeout(string source)
    {
        // A port that was free a moment ago and on which nobody listens.
        using Socket reserved = new(SocketType.Stream, ProtocolType.Tcp);
        reserved.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        await AssertUnreachableAsync(string.Format(
            System.Globalization.CultureInfo.InvariantCulture, source, ((IPEndPoint)reserved.LocalEndPoint!).Port));
    }

    [Theory]
    [InlineData("https://127.0.0.1:{0}")]
    [InlineData("127.0.0.1:{0} --target redis")]
    [InlineData("http://127.0.0.1:{0} --target etcd")]
    public async Task Cluster_that_accepts_and_stays_silent_is_unreachable_too(string source)
    {
        using TcpListener silent = new(IPAddress.Loopback, 0);
        silent.Start();
        await AssertUnreachableAsync(string.Format(
            System.Globalization.CultureInfo.InvariantCulture, source, ((IPEndPoint)silent.LocalEndpoint).Port));
    }

    private static async Task AssertUnreachableAsync(string source)
    {
        Stopwatch clock = Stopwatch.StartNew();
        using BenchProcess process = BenchProcess.StartTool($"-c {source} --connect-timeout 2");
        BenchOutcome outcome = await process.WaitAsync();
        Assert.Equal((1, string.Empty), (outcome.ExitCode, outcome.Output));
        Assert.StartsWith("kahuna-bench: ", Assert.Single(outcome.ErrorLines), StringComparison.Ordinal);

        // Two seconds of timeout plus whatever a busy machine needs to start a process.
        Assert.True(clock.Elapsed < TimeSpan.FromSeconds(60), clock.Elapsed.ToString());
    }

    private static async Task WaitUntilAsync(Func<bool> condition)
    {
        Stopwatch clock = Stopwatch.StartNew();
        while (!condition())
        {
            Assert.True(clock.Elapsed < TimeSpan.FromMinutes(1), "The condition did not come true.");
            await Task.Delay(5);
        }
    }
}
