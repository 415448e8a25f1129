using System.Text.Json;
using Kahuna.Benchmark.CommandLine;
using Kahuna.Benchmark.Targets;
using Kahuna.Benchmark.Workloads;
using Kahuna.Tests.Tidy;
using Kahuna.Wire.Scripts;

namespace Kahuna.Tests.Benchmark;

/// <summary>
/// The workload that runs a script: which scripts it takes, and which parameters it gives them. Owns a file.
/// </summary>
public sealed class ScriptWorkloadTests : IDisposable
{
    private readonly string _file = Path.GetTempFileName();

    [Fact]
    public async Task Without_a_file_a_key_is_read_and_written()
    {
        (string text, ScriptInput input) = await FirstRunAsync("--value-size 16");
        Assert.Equal("get @key\nset @key @value\n", text);
        Assert.StartsWith("bench:", input.Key, StringComparison.Ordinal);
        Assert.Equal(16, input.Value!.Value.Length);
        Assert.Null(input.Number);
    }

    [Fact]
    public async Task Without_a_file_the_keys_have_the_durability_of_the_run() =>
        Assert.Equal("eget @key\neset @key @value\n", (await FirstRunAsync("--durability ephemeral")).Text);

    [Theory]
    [InlineData("set @key @n", true, false, true)]
    [InlineData("let x = @value set @key x", true, true, false)]
    [InlineData("set fixed '@value' # and @key", false, false, false)]
    [InlineData("return @n", false, false, true)]
    public async Task A_script_gets_the_parameters_that_it_names(string script, bool key, bool value, bool number)
    {
        Write(script);
        (string text, ScriptInput input) = await FirstRunAsync($"--script {_file}");
        Assert.Equal(script, text);
        Assert.Equal((key, value, number), (input.Key is not null, input.Value is not null, input.Number is not null));
    }

    [Fact]
    public async Task Runs_are_numbered_over_all_workers()
    {
        Write("return @n");
        BenchCommand command = BenchLine.Read($"-c a --workload script --script {_file}");
        WorkloadRun run = command.Workload.Begin(command.Options);
        ScriptLog log = new();
        Requester[] workers = [run.Open(log), run.Open(log)];
        foreach (Requester worker in workers.Concat(workers))
        {
            await worker.SendAsync(default);
        }

        Assert.Equal([1, 2, 3, 4], log.Runs.Select(entry => entry.Input.Number));
    }

    [Theory]
    [InlineData("set @key", "--script: 'FILE': line 1, column ")]
    [InlineData("set @key @value\nset @key }", "--script: 'FILE': line 2, column ")]
    [InlineData("set @key @amount", "'FILE' names @amount; the parameters of a run are @key, @value and @n.")]
    [InlineData("eset @key 1", "--durability: the keys of 'FILE' are ephemeral; use --durability ephemeral.")]
    [InlineData("set 'a/b' 1 eset 'a/c' 1", "--script: 'FILE': the script has both persistent and ephemeral keys")]
    [InlineData("set 'other/a' 1 set @key 1", "--script: 'FILE': line 1, column ")]
    public async Task A_script_that_cannot_run_ends_the_command(string script, string expected)
    {
        Write(script);
        string line = await RefusalAsync();
        Assert.Contains(expected.Replace("FILE", _file, StringComparison.Ordinal), line, StringComparison.Ordinal);
    }

    [Fact]
    public async Task A_file_must_be_text_of_a_limited_size()
    {
        await File.WriteAllBytesAsync(_file, [(byte)'#', 0xff]);
        Assert.Contains("is not UTF-8 text.", await RefusalAsync(), StringComparison.Ordinal);
        Write("#" + new string('x', ScriptBody.TextBytesMax));
        Assert.Contains("is larger than a script may be, 16,384", await RefusalAsync(), StringComparison.Ordinal);
    }

    [Fact]
    public async Task A_byte_order_mark_is_left_out()
    {
        await File.WriteAllBytesAsync(_file, [0xef, 0xbb, 0xbf, .. "return 1"u8]);
        Assert.Equal("return 1", (await FirstRunAsync($"--script {_file}")).Text);
    }

    [Fact]
    public async Task The_report_holds_the_script()
    {
        Write("set @key @value");
        string line = $"-c a --workload script --script {_file} --warmup 0 --format json";
        BenchOutcome outcome = await BenchOutcome.RunLongEnoughAsync(FakeTarget.Yielding(), line);
        Assert.Equal(0, outcome.ExitCode);
        JsonElement parameters = outcome.Json.GetProperty("parameters");
        Assert.Equal("script", parameters.GetProperty("workload").GetString());
        Assert.Equal(_file, parameters.GetProperty("script").GetString());
        Assert.Equal("set @key @value", parameters.GetProperty("scriptText").GetString());
        Assert.Equal("script", outcome.Json.GetProperty("operations")[0].GetProperty("operation").GetString());
    }

    [Fact]
    public async Task The_example_of_a_counter_can_be_measured() =>
        Assert.Contains("set @key", (await FirstRunAsync(
            $"--script {Repository.FullPath("docs/scripts/counter.4gl")}")).Text, StringComparison.Ordinal);

    public void Dispose() => File.Delete(_file);

    private void Write(string script) => File.WriteAllText(_file, script);

    /// <summary>The line that refuses the file.</summary>
    private async Task<string> RefusalAsync()
    {
        BenchOutcome outcome = await BenchOutcome.RunAsync(
            new FakeTarget(), $"-c a --workload script --script {_file} --duration 0.05 --warmup 0");
        Assert.Equal(1, outcome.ExitCode);
        return Assert.Single(outcome.ErrorLines);
    }

    private static async Task<(string Text, ScriptInput Input)> FirstRunAsync(string arguments)
    {
        BenchCommand command = BenchLine.Read($"-c a --workload script --seed 1 {arguments}");
        ScriptLog log = new();
        SplitMix random = new(1, 0);
        await command.Workload.Begin(command.Options).Open(log).SendAsync(Draw.From(ref random));
        return Assert.Single(log.Runs);
    }

    /// <summary>Keeps what it is given.</summary>
    private sealed class ScriptLog : IScriptSession
    {
        public List<(string Text, ScriptInput Input)> Runs { get; } = [];

        public bool IsTimeout(Exception failure) => false;

        public ValueTask<OperationResult> RunAsync(string text, ScriptInput input)
        {
            Runs.Add((text, input));
            return new ValueTask<OperationResult>(OperationResult.Success);
        }
    }
}
