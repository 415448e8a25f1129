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
        await UntilAsync(
            tool, ExitCode.Done, static rows => rows.All(static row => row.GetProperty("leader").GetInt32() == 3),
            "transfer", "0", "--to", "3");
    }

    /// <summary>
    /// Each line says why and what to do. A group that has no leader yet, or a busy one, says something else and is
    /// asked again.
    /// </summary>
    private static Task RefusedAsync(CliTool tool, int groups, params string[] words) => UntilAsync(
        tool, ExitCode.Refused, rows => rows.Length == groups && rows.All(static row =>
            row.GetProperty("problem").GetString() is { } problem
            && problem.Contains("Node 1 ", StringComparison.Ordinal)
            && problem.Contains("goes on leading", StringComparison.Ordinal)
            && problem.EndsWith("name another node.", StringComparison.Ordinal)), words);

    private static async Task UntilAsync(
        CliTool tool, int exitCode, Func<JsonElement[], bool> holds, params string[] words) =>
        await Wait.UntilAsync(async () =>
        {
            CliResult result = await tool.RunAsync([.. words, "-o", "json"]);
            return result.ExitCode == exitCode && holds([.. result.Json.EnumerateArray()]);
        });
}
