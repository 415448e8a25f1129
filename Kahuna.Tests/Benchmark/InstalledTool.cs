using System.Diagnostics;
using Kahuna.Tests.Tidy;
using Kahuna.Tests.Tools.Processes;

namespace Kahuna.Tests.Benchmark;

/// <summary>
/// kahuna-bench as the first commands of docs/benchmarking.md pack and install it, in a home of its own: the user's
/// tools stay as they are. Owned by a test class; packed and installed once, by the test that asks first.
/// </summary>
public sealed class InstalledTool : IDisposable
{
    private const string Page = "docs/benchmarking.md";

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

    private readonly Lazy<Task> _installation;

    public InstalledTool() => _installation = new Lazy<Task>(InstallOnceAsync);

    /// <summary>Where commands run and write their files.</summary>
    public string Home { get; } = Directory.CreateTempSubdirectory("kahuna-bench-page-").FullName;

    /// <summary>How long each command of the installation took.</summary>
    public List<string> Log { get; } = [];

    /// <summary>The lines of all blocks of the page that are marked as shell commands.</summary>
    public static IEnumerable<string> Commands()
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

    /// <summary>Whether the command makes the tool rather than uses it.</summary>
    public static bool Installs(string command) => command.StartsWith("dotnet ", StringComparison.Ordinal);

    /// <summary>Returns when the tool is installed.</summary>
    public Task InstallAsync() => _installation.Value;

    public void Dispose() => Directory.Delete(Home, recursive: true);

    /// <summary>Runs a command as a person types it, where the tool is installed.</summary>
    internal async Task<BenchOutcome> RunAsync(string command)
    {
        using BenchProcess process = Start(command);
        return await process.WaitAsync();
    }

    /// <summary>Starts a command as <see cref="RunAsync"/> does.</summary>
    internal BenchProcess Start(string command)
    {
        // Commands of the SDK need the clone; those of the tool write their reports where they run.
        string folder = Installs(command) ? Repository.Root : Home;
        ProcessStartInfo start = new("bash", ["-e", "-o", "pipefail", "-c", command]) { WorkingDirectory = folder };
        start.Environment["DOTNET_NOLOGO"] = "1";
        start.Environment["PATH"] = Path.Combine(Home, ".dotnet", "tools")
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
            start.Environment["HOME"] = Home;
            start.Environment["DOTNET_CLI_HOME"] = Home;
        }

        return new BenchProcess(Installs(command) ? start : ShortLived.Prepare(start));
    }

    private async Task InstallOnceAsync()
    {
        // A home whose NuGet knows no source: what is installed comes from the source that the command names.
        string folder = Directory.CreateDirectory(Path.Combine(Home, ".nuget", "NuGet")).FullName;
        await File.WriteAllTextAsync(
            Path.Combine(folder, "NuGet.Config"),
            "<configuration><packageSources><clear /></packageSources></configuration>");
        foreach (string command in Commands().Where(Installs))
        {
            long begun = Stopwatch.GetTimestamp();
            BenchOutcome outcome = await RunAsync(command);
            Assert.True(outcome.ExitCode == 0, $"{command}\n{outcome.ExitCode}\n{outcome.Output}\n{outcome.Error}");
            Log.Add($"{Stopwatch.GetElapsedTime(begun).TotalSeconds:0.0} s: {command}");
        }
    }
}
