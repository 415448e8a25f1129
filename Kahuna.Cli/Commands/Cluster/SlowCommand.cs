using System.CommandLine;
using System.Globalization;
using System.Text.Json;
using Kahuna.Cli.Commands.Inputs;
using Kahuna.Cli.Diagnosis;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Results;
using Kahuna.Client.Outcomes;

namespace Kahuna.Cli.Commands.Cluster;

/// <summary><c>slow</c>: the operations that took longest, with their stages. Static.</summary>
internal static class SlowCommand
{
    /// <summary>As many as a node tells.</summary>
    private const int Most = 1000;

    private static readonly string[] s_columns =
    [
        "time", "node", "operation", "key", "partition", "status", "totalMs", "queueMs", "syncMs", "replicateMs",
        "confirmMs", "applyMs", "answerMs",
    ];

    public static CliCommand Create()
    {
        Option<long?> limit = Given.Number("--limit", "Most operations to show [default: 20]", min: 1);
        Option<string> node = Given.Text("--node", "url", "Ask this node alone; without it every node of the cluster");
        return new CliCommand("slow", "List slow operations, newest first, for administrators", async call =>
        {
            int most = (int)Math.Min(call.Get(limit) ?? 20, Most);
            using NodeProbe probe = new(await call.ClientOptionsAsync().ConfigureAwait(false));
            NodeAnswer[] answers = await probe.AskAsync(
                await NodesAsync(call, call.Get(node)).ConfigureAwait(false),
                string.Create(CultureInfo.InvariantCulture, $"/status/slow?limit={most}"), call.Stop)
                .ConfigureAwait(false);
            if (answers.All(static answer => answer.IsRefused))
            {
                return ClusterCommands.Refused(call);
            }

            foreach (NodeAnswer silent in answers.Where(static answer => answer.Root is null))
            {
                call.Note($"{silent.Endpoint.GetLeftPart(UriPartial.Authority)} told nothing: {silent.Problem}.");
            }

            if (answers.All(static answer => answer.Root is null))
            {
                return ExitCode.Unavailable;
            }

            IEnumerable<SlowOperation> newest = answers.SelectMany(SlowOperation.In)
                .OrderByDescending(static operation => operation.At).Take(most);
            await call.Output.WriteAllAsync(
                s_columns,
                call.Output.Format == OutputFormat.Table ? newest.Select(RowOf) : newest.Select(RecordOf))
                .ConfigureAwait(false);
            return ExitCode.Done;
        })
        {
            limit, node,
        };
    }

    private static async Task<IEnumerable<Uri>> NodesAsync(CommandCall call, string? node)
    {
        if (node is null)
        {
            ClusterDescription cluster = await ClusterCommands.DescribeAsync(call).ConfigureAwait(false);
            return cluster.Nodes.Select(static known => known.Endpoint);
        }

        string url = node.Contains("://", StringComparison.Ordinal) ? node : "https://" + node;
        return Uri.TryCreate(url, UriKind.Absolute, out Uri? endpoint) && endpoint.Scheme == Uri.UriSchemeHttps
            ? [endpoint]
            : throw new CliException($"--node: '{node}' is not the address of a node, such as https://a:8082.");
    }

    private static Record RowOf(SlowOperation operation) => new()
    {
        { "time", operation.At?.UtcDateTime.ToString("yyyy-MM-dd HH:mm:ss.fff'Z'", CultureInfo.InvariantCulture) },
        { "node", operation.Node },
        { "operation", operation.Name },
        { "key", operation.Key },
        { "partition", operation.Partition },
        { "status", operation.Status },
        { "totalMs", operation.TotalMs },
        { "queueMs", operation.StageMs("proposed") },
        { "syncMs", operation.StageMs("persisted") },
        { "replicateMs", operation.StageMs("committed") },
        { "confirmMs", operation.StageMs("confirmed") },
        { "applyMs", operation.StageMs("applied") },
        { "answerMs", operation.StageMs("answered") },
    };

    /// <summary>All that the node said, with the node before it.</summary>
    private static Record RecordOf(SlowOperation operation)
    {
        Record record = new() { { "node", operation.Node } };
        foreach (JsonProperty field in operation.Fields)
        {
            record.Add(field.Name, ValueOf(field.Value));
        }

        return record;
    }

    private static object? ValueOf(JsonElement value)
    {
        switch (value.ValueKind)
        {
            case JsonValueKind.Null:
                return null;
            case JsonValueKind.True or JsonValueKind.False:
                return value.GetBoolean();
            case JsonValueKind.Number:
                return value.TryGetInt64(out long whole) ? whole : value.GetDouble();
            case JsonValueKind.Array:
                return value.EnumerateArray().Select(ValueOf).ToArray();
            case JsonValueKind.Object:
                Record record = [];
                foreach (JsonProperty field in value.EnumerateObject())
                {
                    record.Add(field.Name, ValueOf(field.Value));
                }

                return record;
            default:
                return value.GetString();
        }
    }
}
