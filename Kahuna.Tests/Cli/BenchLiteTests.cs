using System.Text.Json;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Measuring;

namespace Kahuna.Tests.Cli;

/// <summary>The small measurement of the command line, on a real cluster.</summary>
[Collection(CliClusterCollection.Name)]
public sealed class BenchLiteTests(CliCluster cluster)
{
    private readonly CliTool _tool = cluster.Tool();

    [Theory]
    [InlineData]
    [InlineData("--ephemeral")]
    public async Task Sets_gets_and_locks_are_measured_and_nothing_is_left(params string[] level)
    {
        string[] words = ["bench-lite", "--seconds", "1", "--concurrency", "4", "--prefix", "small/", "-o", "json"];
        CliResult result = (await _tool.RunAsync([.. words, .. level])).Done();
        result.Tells("kahuna-bench");
        JsonElement[] rows = [.. result.Json.EnumerateArray()];
        Assert.Equal(["set", "get", "lock"], rows.Select(static row => row.GetProperty("operation").GetString()));
        Assert.All(rows, static row =>
        {
            Assert.True(row.GetProperty("perSecond").GetDouble() > 0);
            Assert.Equal(0, row.GetProperty("errors").GetInt64());
        });
        Assert.Equal("0", (await _tool.RunAsync(["count", "small/", .. level])).Done().Output.Trim());
    }

    [Fact]
    public async Task An_interrupted_run_prints_what_it_has_measured_and_deletes_its_keys()
    {
        using CancellationTokenSource stop = new(TimeSpan.FromSeconds(1));
        CliResult result = await _tool.RunAsync(
            ["bench-lite", "--seconds", "3600", "--prefix", "cut/", "-o", "json"], "", stop.Token);
        result.Ended(ExitCode.Interrupted);
        Assert.Equal("0", (await _tool.RunAsync("count", "cut/")).Done().Output.Trim());
    }

    [Fact]
    public async Task What_cannot_be_measured_is_said()
    {
        (await _tool.RunAsync("bench-lite", "--concurrency", "1025")).Ended(ExitCode.Usage).Tells("1024");
        (await _tool.RunAsync("bench-lite", "--seconds", "3601")).Ended(ExitCode.Usage).Tells("3600");
        CliTool ann = cluster.Tool("ann");
        (await ann.RunAsync("bench-lite", "--seconds", "1")).Ended(ExitCode.Denied).Tells("write");
    }

    [Fact]
    public void Quantiles_are_at_most_a_bucket_above_the_exact_ones()
    {
        DurationCounts counts = new();
        Assert.Null(counts.Quantile(0.5));
        for (int i = 1; i <= 1000; i++)
        {
            counts.Add(TimeSpan.FromMicroseconds(i * 10));
        }

        DurationCounts sum = new();
        sum.Add(counts);
        Assert.Equal((1000, TimeSpan.FromMilliseconds(10)), (sum.Count, sum.Max));
        foreach (double share in (double[])[0.01, 0.5, 0.99])
        {
            double exact = 10_000 * share;
            Assert.InRange(sum.Quantile(share)!.Value.TotalMicroseconds, exact, exact * 1.03);
        }

        Assert.Equal(sum.Max, sum.Quantile(1));
        counts.Add(TimeSpan.FromDays(1));
        counts.Add(TimeSpan.Zero);
        Assert.Equal(TimeSpan.FromDays(1), counts.Quantile(1));
    }
}
