using System.Text.Json;
using Kahuna.Benchmark.Workloads;

namespace Kahuna.Tests.Benchmark;

/// <summary>A workload is one object: what it says of itself is all that the rest of the tool needs.</summary>
public sealed class WorkloadTests
{
    private static readonly IReadOnlyList<Workload> s_more = [.. WorkloadList.All, new CopyWorkload()];

    [Fact]
    public void Names_and_rows_are_lower_case_and_names_are_unique()
    {
        IEnumerable<string> words = WorkloadList.All.SelectMany(workload => workload.Rows.Append(workload.Name));
        Assert.All(words, word => Assert.Matches("^[a-z]+$", word));
        Assert.Distinct(WorkloadList.All.Select(workload => workload.Name));
        Assert.All(WorkloadList.All, workload => Assert.NotEmpty(workload.Rows));
    }

    [Fact]
    public async Task A_new_workload_runs_and_is_reported()
    {
        const string Line =
            "-c https://127.0.0.1:8082 --workload copy --copies-per-key 3 --key-space 50 --warmup 0 --format json";
        BenchOutcome outcome = await BenchOutcome.RunLongEnoughAsync(new FakeTarget(), Line, workloads: s_more);
        Assert.Equal(0, outcome.ExitCode);
        JsonElement parameters = outcome.Json.GetProperty("parameters");
        Assert.Equal("copy", parameters.GetProperty("workload").GetString());
        Assert.Equal(50, parameters.GetProperty("seedKeys").GetInt32());
        JsonProperty last = parameters.EnumerateObject().Last();
        Assert.Equal(("copiesPerKey", 3), (last.Name, last.Value.GetInt32()));
        JsonElement row = Assert.Single(outcome.Json.GetProperty("operations").EnumerateArray());
        Assert.Equal("copy", row.GetProperty("operation").GetString());
        Assert.True(outcome.Json.GetProperty("aggregate").GetProperty("count").GetInt64() > 0);
        Assert.Contains("Kahuna Benchmark — copy", outcome.Error, StringComparison.Ordinal);
    }

    [Fact]
    public async Task A_new_workload_is_in_the_help()
    {
        string help = (await BenchOutcome.RunAsync(new FakeTarget(), "--help", workloads: s_more)).Output;
        Assert.Contains(
            "lock, handover, sequence, script, batch, transaction, interactive or copy [default: mixed]",
            help,
            StringComparison.Ordinal);
        Assert.Contains("for get, mixed and copy all", help, StringComparison.Ordinal);
        Assert.Contains("workloads lock, sequence and copy: one holder", help, StringComparison.Ordinal);
        Assert.Contains("all in order; every copy equals its key. A violation", help, StringComparison.Ordinal);
        Assert.Matches(@"--copies-per-key <n> +Copies of each key \[default: 2\]", help);
        Assert.Matches("--script <file>", help);
    }

    [Theory]
    [InlineData("--workload copy --copies-per-key 10", "--copies-per-key: '10' is not a whole number from 1 to 9.")]
    [InlineData("--workload set --copies-per-key 2", "--copies-per-key needs --workload copy.")]
    [InlineData("--workload copy --value-size 7", "--value-size: copies have an even size.")]
    [InlineData("--workload set --script a", "--script needs --workload script or copy.")]
    [InlineData("--workload set --verify", "--verify needs --workload lock, sequence or copy.")]
    [InlineData("--workload scan", "script, batch, transaction, interactive or copy.")]
    [InlineData("--workload copy --target redis", "redis has no 'copy'; with --target redis use set, get, mixed or script.")]
    public async Task A_new_workload_has_its_rules(string arguments, string expected)
    {
        string line = $"-c 127.0.0.1 {arguments}";
        BenchOutcome outcome = await BenchOutcome.RunAsync(new FakeTarget(), line, workloads: s_more);
        Assert.Equal(1, outcome.ExitCode);
        Assert.Contains(expected, Assert.Single(outcome.ErrorLines), StringComparison.Ordinal);
    }
}
