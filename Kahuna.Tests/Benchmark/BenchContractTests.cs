using System.Text.RegularExpressions;
using Kahuna.Benchmark.Workloads;
using Xunit.Sdk;

namespace Kahuna.Tests.Benchmark;

/// <summary>
/// The reports of every workload keep the contract, and the checks notice a report that does not. The installed tool is
/// held to the same contract by <see cref="BenchmarkingPageTests"/>.
/// </summary>
public sealed class BenchContractTests
{
    private const string Source = "-c https://127.0.0.1:8082 --key-space 100";

    public static TheoryData<string> Workloads => [.. WorkloadList.All.Select(static workload => workload.Name)];

    [Fact]
    public async Task Help_has_every_option_with_its_default() => BenchContract.CheckHelp(await HelpAsync());

    [Theory]
    [MemberData(nameof(Workloads))]
    public async Task Every_workload_is_reported_in_all_forms(string workload)
    {
        BenchOutcome console = await RunAsync($"--workload {workload} --warmup 0.01");
        Assert.Equal(0, console.ExitCode);
        BenchContract.CheckConsole(console.Output);
        BenchOutcome json = await RunAsync($"--workload {workload} --warmup 0 --format json");
        BenchContract.CheckJson(json.Output);
        BenchContract.CheckConsole(json.Error);
        BenchOutcome csv = await RunAsync($"--workload {workload} --warmup 0 --format csv --rate 1000");
        BenchContract.CheckCsv(workload, csv.Output);
        BenchContract.CheckConsole(csv.Error);
    }

    [Theory]
    [InlineData("--read-pct", "--read-share")]
    [InlineData("[default: 10000]", "[default: 1000]")]
    [InlineData("[default: mixed]", "[default: set]")]
    public async Task Help_that_broke_the_contract_is_noticed(string text, string instead)
    {
        string help = (await HelpAsync()).Replace(text, instead, StringComparison.Ordinal);
        Assert.ThrowsAny<XunitException>(() => BenchContract.CheckHelp(help));
    }

    [Theory]
    [InlineData("p99.9", "p999")]
    [InlineData("p95    ", "")]
    [InlineData("errors   misses", "misses   errors")]
    [InlineData("tls       :", "TLS       :")]
    [InlineData("key-space :", "keys :")]
    [InlineData("Warming up for", "Warmup:")]
    [InlineData("Seeding key-space…", "Seeding…")]
    [InlineData("TOTAL", "total")]
    public async Task Console_that_broke_the_contract_is_noticed(string text, string instead)
    {
        string good = (await RunAsync("--warmup 0.01")).Output;
        BenchContract.CheckConsole(good);
        string pattern = text.Replace("    ", " +", StringComparison.Ordinal);
        string bad = Regex.Replace(good, pattern, instead);
        Assert.NotEqual(good, bad);
        Assert.ThrowsAny<XunitException>(() => BenchContract.CheckConsole(bad));
    }

    [Theory]
    [InlineData("\"keySpace\"", "\"keys\"")]
    [InlineData("\"aggregate\"", "\"total\"")]
    [InlineData("\"elapsedSec\"", "\"elapsed\"")]
    [InlineData("\"p999Ms\"", "\"p9990Ms\"")]
    [InlineData("\"timeouts\"", "\"timedOut\"")]
    [InlineData("\"serverVersion\"", "\"version\"")]
    [InlineData("\"count\"", "\"rps\": 1, \"count\"")]
    public async Task Json_that_broke_the_contract_is_noticed(string text, string instead)
    {
        string good = (await RunAsync("--warmup 0 --format json")).Output;
        string bad = good.Replace(text, instead, StringComparison.Ordinal);
        Assert.NotEqual(good, bad);
        Assert.ThrowsAny<XunitException>(() => BenchContract.CheckJson(bad));
    }

    [Theory]
    [InlineData("P999Ms", "P9990Ms")]
    [InlineData("Errors,Timeouts", "Timeouts,Errors")]
    [InlineData("TOTAL", "Total")]
    [InlineData(".", ",")]
    public async Task Csv_that_broke_the_contract_is_noticed(string text, string instead)
    {
        string good = (await RunAsync("--warmup 0 --format csv")).Output;
        string bad = good.Replace(text, instead, StringComparison.Ordinal);
        Assert.ThrowsAny<XunitException>(() => BenchContract.CheckCsv("mixed", bad));
    }

    private static Task<BenchOutcome> RunAsync(string arguments) =>
        BenchOutcome.RunLongEnoughAsync(FakeTarget.Yielding(), $"{Source} {arguments}");

    private static async Task<string> HelpAsync() => (await BenchOutcome.RunAsync(new FakeTarget(), "--help")).Output;
}
