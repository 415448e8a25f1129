using System.Diagnostics;

namespace Kahuna.Tests.Tidy;

/// <summary>
/// The scripts can be started, parse, stop at the first error, and refuse bad arguments with their usage.
/// </summary>
public sealed class ScriptTests
{
    private const int LinesMax = 2000;

    public static TheoryData<string> Scripts =>
        [
            .. Repository.Files.Where(file => file.StartsWith("scripts/", StringComparison.Ordinal) && file.EndsWith(
                ".sh", StringComparison.Ordinal)),
            ".ci/run",
        ];

    [Theory]
    [MemberData(nameof(Scripts))]
    public void Can_be_started(string script)
    {
        bool sourced = script == "scripts/lib.sh";
        if (!OperatingSystem.IsWindows())
        {
            Assert.Equal(!sourced, (File.GetUnixFileMode(Repository.FullPath(script)) & UnixFileMode.UserExecute) != 0);
        }

        string[] lines = Repository.Lines(script);
        Assert.Equal(sourced ? "# shellcheck shell=bash" : "#!/usr/bin/env bash", lines[0]);
        Assert.True(sourced || lines.Contains("set -euo pipefail"), "needs: set -euo pipefail");
    }

    [Theory]
    [MemberData(nameof(Scripts))]
    public void Parses(string script) => Assert.Equal((0, ""), Run("bash", "-n", Repository.FullPath(script)));

    [Theory]
    [InlineData("test.sh", "--no-such-option")]
    [InlineData("pack.sh", "--no-such-option")]
    [InlineData("release.sh", "--systems", "win-x64")]
    [InlineData("release.sh", "--check", "no-such-directory/archive.tar.gz")]
    [InlineData("compare.sh", "--rounds", "none")]
    [InlineData("memory.sh", "--keys", "-1")]
    [InlineData("check-history.sh")]
    [InlineData("check-history.sh", "history.jsonl", "--ttl-slack-ms", "-1")]
    [InlineData("check-history.sh", "history.jsonl", "another.jsonl")]
    [InlineData("check-traces.sh")]
    [InlineData("check-traces.sh", "--no-such-option", "trace.jsonl")]
    [InlineData("check-traces.sh", "trace.jsonl", "")]
    [InlineData("sim.sh", "--seeds", "5..1")]
    [InlineData("sim.sh", "--mutant", "no-such-bug")]
    [InlineData("soak.sh", "--minutes", "0")]
    [InlineData("soak.sh", "--seed", "-1")]
    [InlineData("soak.sh", "--no-such-option")]
    [InlineData("hostile.sh", "--minutes", "0")]
    [InlineData("hostile.sh", "--seed", "-1")]
    [InlineData("mutants.sh", "--tries", "0")]
    [InlineData("mutants.sh", "--some", "few")]
    [InlineData("mutants.sh", "no-such-bug")]
    [InlineData("cost.sh", "--workers", "many")]
    [InlineData("scale.sh", "--sections", "none")]
    [InlineData("failover.sh", "--faults", "none")]
    [InlineData("failover.sh", "--rounds", "0")]
    [InlineData("compare.sh", "--only", "postgres")]
    [InlineData("compare.sh", "--workloads", "set,scan")]
    [InlineData("compare.sh", "--against", "no-such-commit")]
    [InlineData("compare.sh", "--json", "no-such-directory/report.json")]
    [InlineData("option-cost.sh", "--rounds", "0")]
    [InlineData("serial.sh", "--callers", "some")]
    [InlineData("partitions.sh", "--no-such-option")]
    [InlineData("idle_connections.sh", "8082", "5000")]
    [InlineData("attack.sh", "--minutes", "0.0")]
    [InlineData("test.sh", "--tier", "slow")]
    [InlineData("cluster.sh", "no-such-command")]
    [InlineData("cluster.sh", "start", "1", "2")]
    [InlineData("cluster.sh", "kill", "4")]
    public void Bad_arguments_get_the_usage_and_exit_code_2(string script, params string[] arguments)
    {
        (int exitCode, string error) = Run(Repository.FullPath("scripts/" + script), arguments);
        Assert.Equal(2, exitCode);
        Assert.StartsWith(script + ": ", error, StringComparison.Ordinal);
        Assert.Contains("Usage: scripts/" + script, error, StringComparison.Ordinal);
    }

    /// <summary>Scripts start programs; what measures or checks is a verb of the test program.</summary>
    [Fact]
    public void Scripts_are_short_in_total()
    {
        int lines = Repository.Files.Where(static file => file.StartsWith("scripts/", StringComparison.Ordinal))
            .Sum(static file => Repository.Lines(file).Length);
        Assert.True(lines < LinesMax, $"scripts/ has {lines} lines; it must have fewer than {LinesMax}.");
    }

    [Fact]
    public void Continuous_integration_runs_the_test_script_and_nothing_else()
    {
        string[] commands =
            [.. Repository.Lines(".ci/run").Where(line => !line.StartsWith('#') && line != "set -euo pipefail")];
        Assert.Equal(["exec \"$(dirname \"${BASH_SOURCE[0]}\")/../scripts/test.sh\""], commands);
    }

    private static (int ExitCode, string Error) Run(string command, params string[] arguments)
    {
        using Process process = Process.Start(new ProcessStartInfo(command, arguments)
        {
            RedirectStandardError = true,
            RedirectStandardInput = true,
            WorkingDirectory = Path.GetTempPath(),
        })!;
        process.StandardInput.Close();
        string error = process.StandardError.ReadToEnd();
        process.WaitForExit();
        return (process.ExitCode, error);
    }
}
