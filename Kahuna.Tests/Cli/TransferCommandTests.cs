using System.Text.Json;
using Kahuna.Cli.Errors;
using Kahuna.Server.Hosting;
using Kahuna.Tests.Client;
using Kahuna.Tests.Hosting;

namespace Kahuna.Tests.Cli;

/// <summary><c>kahuna transfer</c> where the node that is to lead is down.</summary>
public sealed class TransferCommandTests
{
    [Fact]
    public async Task A_node_that_is_down_takes_nothing_over_and_each_line_says_why_and_what_to_do()
    {
        using TemporaryDirectory directory = new();
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(
            3, configure: static options => options with { Partitions = 1 }).WaitAsync(Wait.Longest);
        CliTool tool = new()
        {
            Variables =
            {
                ["KAHUNA_ENDPOINTS"] = cluster.Endpoints,
                ["KAHUNA_CONTEXTS"] = directory.File("contexts.json", "{}"),
            },
        };

        // Node 1 is the one that placement prefers, and the other two elect a leader of their own.
        await cluster.Nodes[0].DisposeAsync();
        await RefusedAsync(tool, 2, "transfer", "0", "--to", "1");
        await RefusedAsync(tool, 3, "transfer", "--all");
        CliResult moved = await UntilAsync(tool, ExitCode.Done, "transfer", "0", "--to", "3");
        Assert.All(moved.Json.EnumerateArray(), static row => Assert.Equal(3, row.GetProperty("leader").GetInt32()));
    }

    /// <summary>A group without a leader is asked again: the others elect one within some seconds.</summary>
    private static async Task RefusedAsync(CliTool tool, int groups, params string[] words)
    {
        CliResult refused = await UntilAsync(tool, ExitCode.Refused, words);
        JsonElement[] rows = [.. refused.Json.EnumerateArray()];
        Assert.Equal(groups, rows.Length);
        foreach (JsonElement row in rows)
        {
            string problem = row.GetProperty("problem").GetString()!;
            Assert.Contains("Node 1 ", problem, StringComparison.Ordinal);
            Assert.Contains("goes on leading", problem, StringComparison.Ordinal);
            Assert.EndsWith("name another node.", problem, StringComparison.Ordinal);
        }
    }

    private static async Task<CliResult> UntilAsync(CliTool tool, int exitCode, params string[] words)
    {
        CliResult? result = null;
        await Wait.UntilAsync(async () =>
        {
            result = await tool.RunAsync([.. words, "-o", "json"]);
            return result.ExitCode == exitCode;
        });
        return result!;
    }
}
