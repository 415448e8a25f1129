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
        Option<bool> watch = Given.Flag("--watch", "Show new ones again and again, until Ctrl+C");
        Option<TimeSpan?> interval = Given.Time("--interval", "With --watch: time between two readings [default: 2s]");
        Option<long?> count = Given.Number("--count", "With --watch: end after this many readings", min: 1);
        return new CliCommand("slow", "List slow operations, newest first, for administrators", async call =>
        {
            int most = (int)Math.Min(call.Get(limit) ?? 20, Most);
            bool isWatch = call.Get(watch);
            if (!isWatch && (call.Get(interval) is not null || call.Get(count) is not null))
            {
                throw new CliException("--interval and --count belong to --watch.");
            }

            if (isWatch && call.Output.Format == OutputFormat.Json)
            {
                throw new CliException("--watch has no end that one JSON document could have; use --output jsonl.");
            }

            using NodeProbe probe = new(await call.ClientOptionsAsync().ConfigureAwait(false));
            Uri[] nodes = [.. await NodesAsync(call, call.Get(node)).ConfigureAwait(false)];
            return isWatch
                ? await WatchAsync(
                    call, () => AskAsync(call, probe, nodes, Most), most, call.Get(interval),
                    call.Get(count) ?? long.MaxValue).ConfigureAwait(false)
                : await ShowAsync(call, await AskAsync(call, probe, nodes, most).ConfigureAwait(false), most)
                    .ConfigureAwait(false);
        })
        {
            limit, node, watch, interval, count,
        };
    }

    private static async Task<int> ShowAsync(CommandCall call, NodeAnswer[] answers, int most)
    {
        if (answers.All(static answer => answer.IsRefused))
        {
            return ClusterCommands.Refused(call);
        }

        Name(call, answers.Where(static answer => answer.Root is null));
        if (answers.All(static answer => answer.Root is null))
        {
            return ExitCode.Unavailable;
        }

        await WriteAsync(call, NewestOf(answers, most)).ConfigureAwait(false);
        if (call.Output.Format == OutputFormat.Table && !answers.SelectMany(SlowOperation.In).Any())
        {
            call.Note("Nothing was slow: nodes keep what takes as long as their --slow-log-threshold, or longer.");
        }

        return ExitCode.Done;
    }

    /// <summary>
    /// The table of the newest again and again; as lines of JSON each operation once. Nodes that do not answer are
    /// named once, on a terminal below each table.
    /// </summary>
    private static async Task<int> WatchAsync(
        CommandCall call, Func<Task<NodeAnswer[]>> ask, int most, TimeSpan? interval, long readings)
    {
        SlowNews news = new();
        for (long i = 0; i < readings; i++)
        {
            if (i > 0)
            {
                await Task.Delay(interval ?? TimeSpan.FromSeconds(2), call.Stop).ConfigureAwait(false);
            }

            NodeAnswer[] answers = await ask().ConfigureAwait(false);
            if (answers.All(static answer => answer.IsRefused))
            {
                return ClusterCommands.Refused(call);
            }

            IReadOnlyList<SlowOperation> added = news.Of(answers);
            if (call.Output.Format == OutputFormat.Table)
            {
                call.Output.ClearScreen();
                await WriteAsync(call, NewestOf(answers, most)).ConfigureAwait(false);
            }
            else
            {
                await WriteAsync(call, i == 0 ? added.TakeLast(most) : added).ConfigureAwait(false);
                if (news.Missed > 0)
                {
                    call.Note(string.Create(
                        CultureInfo.InvariantCulture,
                        $"{news.Missed:N0} more were slow than the nodes keep; they are not shown."));
                }
            }

            NodeAnswer[] silent = [.. news.NewlySilent(answers)];
            Name(call, call.Output.ClearsScreen ? answers.Where(static answer => answer.Root is null) : silent);
        }

        return ExitCode.Done;
    }

    private static Task<NodeAnswer[]> AskAsync(CommandCall call, NodeProbe probe, Uri[] nodes, int most) =>
        probe.AskAsync(
            nodes, string.Create(CultureInfo.InvariantCulture, $"/status/slow?limit={most}"), call.Stop);

    private static IEnumerable<SlowOperation> NewestOf(NodeAnswer[] answers, int most) => answers
        .SelectMany(SlowOperation.In).OrderByDescending(static operation => operation.At).Take(most);

    private static void Name(CommandCall call, IEnumerable<NodeAnswer> silent)
    {
        foreach (NodeAnswer node in silent)
        {
            call.Note($"{node.Endpoint.GetLeftPart(UriPartial.Authority)} told nothing: {node.Problem}.");
        }
    }

    private static Task WriteAsync(CommandCall call, IEnumerable<SlowOperation> operations)
    {
        bool isTable = call.Output.Format == OutputFormat.Table;
        return call.Output.WriteAllAsync(s_columns, isTable ? operations.Select(RowOf) : operations.Select(RecordOf));
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
