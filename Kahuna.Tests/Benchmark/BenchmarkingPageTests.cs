using System.Diagnostics;
using Kahuna.Benchmark.CommandLine;
using Kahuna.Benchmark.Workloads;
using Kahuna.Tests.Tidy;
using Xunit.Abstractions;

namespace Kahuna.Tests.Benchmark;

/// <summary>
/// Runs the commands of docs/benchmarking.md as written and in order: packs the tool, installs it, uses it, and holds
/// everything that it reports to the contract.
/// </summary>
public sealed class BenchmarkingPageTests(InstalledTool tool, ITestOutputHelper output) : IClassFixture<InstalledTool>
{
    private const string Page = "docs/benchmarking.md";

    [Fact]
    public async Task Every_command_runs()
    {
        await tool.InstallAsync();
        tool.Log.ForEach(output.WriteLine);
        List<string> commands = [.. InstalledTool.Commands()];
        Assert.True(commands.Count > 12, $"{commands.Count} commands");
        Assert.Equal([true, true, false], commands.Take(3).Select(InstalledTool.Installs));
        int reports = 0;
        foreach (string command in commands.Where(static command => !InstalledTool.Installs(command)))
        {
            long begun = Stopwatch.GetTimestamp();
            await using IAsyncDisposable? standIn = await PageStandIns.StartAsync(command);
            if (standIn is null)
            {
                output.WriteLine($"left out, another program has its port: {command}");
                continue;
            }

            BenchOutcome outcome = await tool.RunAsync(command);
            Assert.True(outcome.ExitCode == 0, $"{command}\n{outcome.ExitCode}\n{outcome.Output}\n{outcome.Error}");
            reports += await CheckReportAsync(command, outcome);
            output.WriteLine($"{Stopwatch.GetElapsedTime(begun).TotalSeconds:0.0} s: {command}");
        }

        output.WriteLine($"Checked: {commands.Count} commands of {Page} on the installed tool, {reports} reports");
    }

    [Fact]
    public async Task Installed_tool_has_the_options_of_the_contract()
    {
        await tool.InstallAsync();
        BenchOutcome help = await tool.RunAsync("kahuna-bench --help");
        Assert.Equal((0, string.Empty), (help.ExitCode, help.Error));
        BenchContract.CheckHelp(help.Output);
        BenchOutcome version = await tool.RunAsync("kahuna-bench --version");
        Assert.Equal((0, string.Empty), (version.ExitCode, version.Error));
        string package = Assert.Single(Directory.GetFiles(
            Repository.FullPath("Kahuna.Benchmark/nupkg"), $"Kahuna.Benchmark.{version.Output.Trim()}.nupkg"));
        Assert.True(new FileInfo(package).Length > 0);
    }

    [Theory]
    [InlineData("--connection-source ftp://a", "--connection-source: 'ftp://a'")]
    [InlineData("-c embedded --workload scan", "--workload: 'scan'")]
    [InlineData("-c embedded --duration never", "--duration: 'never'")]
    [InlineData("-c embedded --warmup -1", "--warmup: '-1'")]
    [InlineData("-c embedded --concurrency 0", "--concurrency: '0'")]
    [InlineData("-c embedded --rate -1", "--rate: '-1'")]
    [InlineData("-c embedded --key-space 0", "--key-space: '0'")]
    [InlineData("-c embedded --value-size big", "--value-size: 'big'")]
    [InlineData("-c embedded --read-pct 101", "--read-pct: '101'")]
    [InlineData("-c embedded --durability none", "--durability: 'none'")]
    [InlineData("-c embedded --workload script --script no.4gl", "--script: 'no.4gl' does not exist.")]
    [InlineData("-c embedded --timeout 0", "--timeout: '0'")]
    [InlineData("-c embedded --format xml", "--format: 'xml'")]
    [InlineData("-c embedded --format csv --output no/a.csv", "--output: 'no/a.csv'")]
    [InlineData("-c embedded --seed x", "--seed: 'x'")]
    [InlineData("-c embedded --target mysql", "--target: 'mysql'")]
    [InlineData("--workload set", "'--connection-source' is required")]
    [InlineData("-c https://127.0.0.1:1 --connect-timeout 1", "https://127.0.0.1:1 cannot be reached")]
    public async Task Installed_tool_refuses_a_wrong_value_with_one_line(string arguments, string expected)
    {
        await tool.InstallAsync();
        BenchOutcome outcome = await tool.RunAsync($"kahuna-bench {arguments}");
        Assert.Equal((1, string.Empty), (outcome.ExitCode, outcome.Output));
        string line = Assert.Single(outcome.ErrorLines);
        Assert.StartsWith("kahuna-bench: ", line, StringComparison.Ordinal);
        Assert.Contains(expected, line, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Installed_tool_reports_what_it_has_on_ctrl_c()
    {
        await tool.InstallAsync();
        await using FakeRedisServer server = new();
        using BenchProcess process = tool.Start(
            $"exec env --default-signal=INT kahuna-bench -c {server.Endpoint} --target redis --workload set "
                + "--duration 3600 --warmup 0");
        for (Stopwatch waited = Stopwatch.StartNew(); server.Commands < 5_000; await Task.Delay(5))
        {
            Assert.True(waited.Elapsed < LastNet.Span, process.Error);
        }

        // On a busy machine that many can have come before the first answer was taken.
        await Task.Delay(500);
        using (Process kill = Process.Start("kill", ["-INT", $"{process.Id}"]))
        {
            await kill.WaitForExitAsync();
        }

        BenchOutcome outcome = await process.WaitAsync();
        Assert.Equal(130, outcome.ExitCode);
        BenchContract.CheckConsole(outcome.Output);
        Assert.Matches(@"\nTOTAL +[1-9]", outcome.Output);
    }

    [Fact]
    public async Task Every_option_is_on_the_page()
    {
        string page = await File.ReadAllTextAsync(Repository.FullPath(Page));
        OptionTable table = new(WorkloadList.All);
        Assert.All(
            table.Root.Options.Where(option => !option.Hidden && option.Name is not "--help" and not "--version"),
            option => Assert.Contains($"`{option.Name}` |", page, StringComparison.Ordinal));
    }

    [Fact]
    public async Task Every_workload_is_on_the_page_and_in_a_command()
    {
        string page = await File.ReadAllTextAsync(Repository.FullPath(Page));
        string[] commands = [.. InstalledTool.Commands()];
        Assert.All(WorkloadList.All, workload =>
        {
            Assert.Contains($"\n| `{workload.Name}` |", page, StringComparison.Ordinal);
            Assert.Contains(
                commands,
                command => $"{command} ".Contains($"--workload {workload.Name} ", StringComparison.Ordinal));
        });
    }

    [Fact]
    public async Task Every_command_of_the_tool_is_in_a_block_that_is_run()
    {
        string page = await File.ReadAllTextAsync(Repository.FullPath(Page));
        Assert.Equal(page.Split('\n').Where(UsesTool), InstalledTool.Commands().Where(UsesTool));
    }

    /// <summary>Checks what a command has written; returns the number of reports.</summary>
    private async Task<int> CheckReportAsync(string command, BenchOutcome outcome)
    {
        if (!UsesTool(command) || !command.Contains(" -c ", StringComparison.Ordinal))
        {
            return 0;
        }

        string? format = ValueOf(command, "--format");
        BenchContract.CheckConsole(format is null ? outcome.Output : outcome.Error);
        if (ValueOf(command, "--output") is not { } file)
        {
            return 1;
        }

        Assert.Empty(outcome.Output);
        string report = await File.ReadAllTextAsync(Path.Combine(tool.Home, file));
        if (format == "csv")
        {
            BenchContract.CheckCsv(ValueOf(command, "--workload") ?? "mixed", report);
        }
        else
        {
            BenchContract.CheckJson(report);
        }

        return 2;
    }

    private static bool UsesTool(string line) => line.StartsWith("kahuna-bench ", StringComparison.Ordinal);

    private static string? ValueOf(string command, string option)
    {
        string[] words = command.Split(' ');
        int at = Array.IndexOf(words, option);
        return at < 0 ? null : words[at + 1];
    }
}
