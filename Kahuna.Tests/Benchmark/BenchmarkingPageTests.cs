using System.Diagnostics;
using System.Net;
using System.Net.Sockets;
using Kahuna.Benchmark.CommandLine;
using Kahuna.Benchmark.Workloads;
using Kahuna.Tests.Tidy;
using Xunit.Abstractions;

namespace Kahuna.Tests.Benchmark;

/// <summary>
/// Runs the commands of docs/benchmarking.md as written and in order: packs the tool, installs it into a home of its
/// own, uses it. Where a command names a peer on its usual port and none is there, a small server of the tests stands
/// in.
/// </summary>
public sealed class BenchmarkingPageTests(ITestOutputHelper output)
{
    private const string Page = "docs/benchmarking.md";
    private const int RedisPort = 6379;
    private const int EtcdPort = 2379;

    /// <summary>
    /// Set by the process that runs the tests for its own SDK; a command that a person types does not have them.
    /// </summary>
    private static readonly string[] s_sdkVariables =
    [
        "MSBuildSDKsPath",
        "MSBuildExtensionsPath",
        "MSBUILD_EXE_PATH",
        "MSBuildLoadMicrosoftTargetsReadOnly",
        "DOTNET_HOST_PATH",
    ];

    [Fact]
    public async Task Every_command_runs()
    {
        string home = Directory.CreateTempSubdirectory("kahuna-bench-page-").FullName;
        await using FakeRedisServer? redis = IsFree(RedisPort) ? new FakeRedisServer(RedisPort) : null;
        await using FakeEtcdServer? etcd = IsFree(EtcdPort) ? await FakeEtcdServer.StartAsync(EtcdPort) : null;
        try
        {
            PrepareHome(home);
            List<string> commands = [.. Commands()];
            Assert.True(commands.Count > 12, $"{commands.Count} commands");
            foreach (string command in commands)
            {
                long begun = Stopwatch.GetTimestamp();
                using BenchProcess process = new(Start(command, home));
                BenchOutcome outcome = await process.WaitAsync();
                Assert.True(outcome.ExitCode == 0, $"{command}\n{outcome.ExitCode}\n{outcome.Output}\n{outcome.Error}");
                output.WriteLine($"{Stopwatch.GetElapsedTime(begun).TotalSeconds:0.0} s: {command}");
            }
        }
        finally
        {
            Directory.Delete(home, recursive: true);
        }
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
    public async Task Every_workload_is_on_the_page()
    {
        string page = await File.ReadAllTextAsync(Repository.FullPath(Page));
        Assert.All(
            WorkloadList.All,
            workload => Assert.Contains($"\n| `{workload.Name}` |", page, StringComparison.Ordinal));
    }

    /// <summary>The lines of all blocks that are marked as shell commands.</summary>
    private static IEnumerable<string> Commands()
    {
        bool isInside = false;
        foreach (string line in Repository.Lines(Page))
        {
            if (line.StartsWith("```", StringComparison.Ordinal))
            {
                isInside = line == "```sh";
            }
            else if (isInside)
            {
                yield return line;
            }
        }
    }

    private static ProcessStartInfo Start(string command, string home)
    {
        // Commands of the SDK need the clone; those of the tool write their reports where they run.
        string folder = command.StartsWith("dotnet ", StringComparison.Ordinal) ? Repository.Root : home;
        ProcessStartInfo start = new("bash", ["-e", "-o", "pipefail", "-c", command]) { WorkingDirectory = folder };
        start.Environment["DOTNET_NOLOGO"] = "1";
        start.Environment["PATH"] = Path.Combine(home, ".dotnet", "tools")
            + Path.PathSeparator
            + Environment.GetEnvironmentVariable("PATH");
        foreach (string variable in s_sdkVariables)
        {
            start.Environment.Remove(variable);
        }

        // In another home the SDK would restore, and so compile, everything anew.
        if (!command.StartsWith("dotnet pack ", StringComparison.Ordinal))
        {
            start.Environment["NUGET_PACKAGES"] = Environment.GetEnvironmentVariable("NUGET_PACKAGES")
                ?? Path.Combine(Environment.GetFolderPath(Environment.SpecialFolder.UserProfile), ".nuget", "packages");
            start.Environment["HOME"] = home;
            start.Environment["DOTNET_CLI_HOME"] = home;
        }

        return start;
    }

    /// <summary>
    /// A home whose NuGet knows no source: what is installed comes from the source that the command names.
    /// </summary>
    private static void PrepareHome(string home)
    {
        string folder = Directory.CreateDirectory(Path.Combine(home, ".nuget", "NuGet")).FullName;
        File.WriteAllText(
            Path.Combine(folder, "NuGet.Config"),
            "<configuration><packageSources><clear /></packageSources></configuration>");
    }

    private static bool IsFree(int port)
    {
        try
        {
            using TcpListener listener = new(IPAddress.Loopback, port);
            listener.Start();
            return true;
        }
        catch (SocketException)
        {
            return false;
        }
    }
}
