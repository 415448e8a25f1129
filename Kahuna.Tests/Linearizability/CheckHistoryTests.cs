using System.Diagnostics;
using System.Globalization;
using Kahuna.Tests.Benchmark;
using Kahuna.Tests.Hosting;
using Kahuna.Tests.Tidy;
using static Kahuna.Tests.Linearizability.Recorded;

namespace Kahuna.Tests.Linearizability;

/// <summary>The command check-history and its script: exit codes, what is printed, and bad usage.</summary>
public sealed class CheckHistoryTests : IDisposable
{
    private static readonly HistoryOperation[] s_good =
        [Set(1, 0, 10, "a", 1), Get(2, 20, 30, "a", 1), Get(3, 25, 40, "b").Failed()];
    private static readonly HistoryOperation[] s_bad = [.. s_good, Set(1, 50, 60, "b", 2), Get(2, 70, 80, "a", 1)];

    private readonly TemporaryDirectory _directory = new();

    public void Dispose() => _directory.Dispose();

    [Fact]
    public void Linearizable_is_0()
    {
        (int code, string output, string error) = Run(FileOf(s_good));
        Assert.Equal((0, string.Empty), (code, error));
        Assert.Matches(
            @"^linearizable: 1 keys, 3 operations \(2 ok, 1 fail, 0 unknown\), \d states in \d+\.\d\d s\n$", output);
    }

    [Fact]
    public void Not_linearizable_is_1_and_shows_why()
    {
        (int code, string output, string error) = Run(FileOf(s_bad));
        Assert.Equal((1, string.Empty), (code, error));
        string[] lines = output.Split('\n');
        Assert.Equal(
            "key k: not linearizable; these 2 operations contradict each other, whatever its other 2 did:", lines[0]);
        Assert.Equal(
            [s_bad[3], s_bad[4]],
            HistoryReader.Read(new StringReader($"{lines[1]}\n{lines[2]}"))
                .Select(operation => operation with { Line = 0 }));
        Assert.StartsWith("not linearizable: 1 of 1 keys, 5 operations", lines[3], StringComparison.Ordinal);
    }

    [Fact]
    public void Options_are_obeyed()
    {
        string early = FileOf([Set(1, 0, 10, "a").For(100), GetNothing(1, 70, 80)]);
        Assert.Equal(1, Run(early).Code);
        Assert.Equal(0, Run(early, "--ttl-slack-ms", "20").Code);
        string late = FileOf([Set(1, 0, 10, "a").For(100), Get(1, 200, 210, "a")]);
        Assert.Equal(0, Run(late).Code);
        Assert.Equal(1, Run("--ttl-lateness-ms", "50", late).Code);
        Assert.StartsWith(
            "key k: not linearizable\n", Run(early, "--explain-seconds", "0").Output, StringComparison.Ordinal);
        (int code, string output, _) = Run(FileOf(s_good), "--states-max", "0");
        Assert.Equal(2, code);
        Assert.Contains(
            "undecided (--states-max lets the search go on for longer): 1 of 1 keys", output, StringComparison.Ordinal);
    }

    [Theory]
    [InlineData("a history file is needed")]
    [InlineData("one file at a time, not second too", "first", "second")]
    [InlineData("--ttl-slack-ms needs a whole number from 0 on", "file", "--ttl-slack-ms")]
    [InlineData("--ttl-slack-ms needs a whole number from 0 on", "file", "--ttl-slack-ms", "-5")]
    [InlineData("unknown option --model", "file", "--model", "5")]
    public void Bad_usage_is_2(string expected, params string[] arguments)
    {
        (int code, string output, string error) = Run(arguments);
        Assert.Equal((2, string.Empty), (code, output));
        Assert.Equal($"check-history: {expected}; scripts/check-history.sh --help tells more\n", error);
    }

    [Theory]
    [InlineData("", ": holds no operation")]
    [InlineData("{}", ": line 1: op is missing")]
    public void Unreadable_is_2(string content, string expected)
    {
        string file = _directory.File("history.jsonl", content);
        Assert.Equal((2, string.Empty, $"check-history: {file}{expected}\n"), Run(file));
    }

    [Fact]
    public void Missing_file_is_2()
    {
        (int code, string output, string error) = Run(Path.Combine(_directory.Path, "none.jsonl"));
        Assert.Equal((2, string.Empty), (code, output));
        Assert.StartsWith("check-history: cannot read ", error, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Script_returns_what_the_command_returns()
    {
        BenchOutcome good = await RunScriptAsync(FileOf(s_good));
        Assert.Equal((0, string.Empty), (good.ExitCode, good.Error));
        Assert.StartsWith("linearizable: ", good.Output, StringComparison.Ordinal);
        BenchOutcome bad = await RunScriptAsync(FileOf(s_bad), "--ttl-slack-ms", "5");
        Assert.Equal(1, bad.ExitCode);
        Assert.Contains("contradict each other", bad.Output, StringComparison.Ordinal);
        BenchOutcome unreadable = await RunScriptAsync(_directory.File("nonsense.jsonl", "nonsense\n"));
        Assert.Equal((2, string.Empty), (unreadable.ExitCode, unreadable.Output));
        Assert.Contains("nonsense.jsonl: line 1: is no JSON", unreadable.Error, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Script_explains_itself_and_tells_a_missing_file_from_a_verdict()
    {
        BenchOutcome help = await RunScriptAsync("--help");
        Assert.Equal((0, string.Empty), (help.ExitCode, help.Error));
        Assert.StartsWith("Usage: scripts/check-history.sh FILE [options]\n", help.Output, StringComparison.Ordinal);
        CheckerOptions defaults = new();
        Assert.Contains($"default {defaults.TtlSlack.TotalMilliseconds}\n", help.Output, StringComparison.Ordinal);
        Assert.Contains($"default {defaults.StatesMax}\n", help.Output, StringComparison.Ordinal);
        Assert.Contains($"default {defaults.ExplainTimeMax.TotalSeconds}\n", help.Output, StringComparison.Ordinal);
        BenchOutcome missing = await RunScriptAsync(Path.Combine(_directory.Path, "none.jsonl"));
        Assert.Equal(2, missing.ExitCode);
        Assert.StartsWith("check-history.sh: cannot read ", missing.Error, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Assembly_without_a_command_says_what_it_offers()
    {
        using BenchProcess process = new(new ProcessStartInfo("dotnet", [typeof(CheckHistoryTests).Assembly.Location]));
        BenchOutcome outcome = await process.WaitAsync();
        Assert.Equal((2, string.Empty), (outcome.ExitCode, outcome.Output));
        Assert.StartsWith(
            "Kahuna.Tests: the first argument must be one of: attack, attackers, check-history",
            outcome.Error,
            StringComparison.Ordinal);
    }

    private static (int Code, string Output, string Error) Run(params string[] arguments)
    {
        using StringWriter output = new(CultureInfo.InvariantCulture) { NewLine = "\n" };
        using StringWriter error = new(CultureInfo.InvariantCulture) { NewLine = "\n" };
        int code = CheckHistoryCommand.Run(arguments, output, error);
        return (code, output.ToString(), error.ToString());
    }

    /// <summary>With the assembly that is being tested: a build would replace it under the running tests.</summary>
    private static async Task<BenchOutcome> RunScriptAsync(params string[] arguments)
    {
        ProcessStartInfo start = new(Repository.FullPath("scripts/check-history.sh"), arguments)
        {
            WorkingDirectory = Path.GetTempPath(),
        };
        start.Environment["KAHUNA_TESTS_DLL"] = typeof(CheckHistoryTests).Assembly.Location;
        using BenchProcess process = new(start);
        return await process.WaitAsync();
    }

    private string FileOf(IEnumerable<HistoryOperation> operations)
    {
        using StringWriter target = new(CultureInfo.InvariantCulture);
        HistoryWriter lines = new(target);
        foreach (HistoryOperation operation in operations)
        {
            lines.Write(operation);
        }

        return _directory.File($"{Guid.NewGuid():N}.jsonl", target.ToString());
    }
}
