using System.CommandLine;
using Kahuna.Cli.Commands.Inputs;
using Kahuna.Cli.Diagnosis;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Results;
using Kahuna.Client.Outcomes;

namespace Kahuna.Cli.Commands.Cluster;

/// <summary><c>top</c>: the load of every node, again and again. Static.</summary>
internal static class TopCommand
{
    private static readonly string[] s_columns =
    [
        "time", "node", "ready", "leads", "commitsPerSecond", "keys", "locks", "persistent", "ephemeral", "log",
        "memory", "problem",
    ];

    public static CliCommand Create()
    {
        Option<TimeSpan?> interval = Given.Time("--interval", "Time between two readings [default: 2s]");
        Option<long?> count = Given.Number("--count", "End after this many readings", min: 1);
        return new CliCommand("top", "Follow the load of every node, until Ctrl+C; needs the right admin", async call =>
        {
            ClusterDescription cluster = await ClusterCommands.DescribeAsync(call).ConfigureAwait(false);
            using NodeProbe probe = new(await call.ClientOptionsAsync().ConfigureAwait(false));
            Uri[] nodes = [.. cluster.Nodes.Select(static node => node.Endpoint)];
            long readings = call.Get(count) ?? long.MaxValue;
            Reading? before = null;
            for (long i = 0; i < readings; i++)
            {
                if (i > 0)
                {
                    await Task.Delay(call.Get(interval) ?? TimeSpan.FromSeconds(2), call.Stop).ConfigureAwait(false);
                }

                Reading now = new(
                    TimeProvider.System.GetTimestamp(), await probe.ReadAsync(nodes, call.Stop).ConfigureAwait(false));
                if (now.Reports.All(static report => report.IsRefused))
                {
                    return ClusterCommands.Refused(call);
                }

                call.Output.ClearScreen();
                await call.Output.WriteAllAsync(s_columns, now.Reports.Select((_, node) => RecordOf(now, before, node)))
                    .ConfigureAwait(false);
                before = now;
            }

            return ExitCode.Done;
        })
        {
            interval, count,
        };
    }

    private static Record RecordOf(Reading now, Reading? before, int node)
    {
        NodeStatus? status = now.Reports[node].Status;
        return new Record
        {
            { "time", DateTimeOffset.UtcNow },
            { "node", status?.NodeId ?? (object)now.Reports[node].Endpoint.Authority },
            { "ready", status?.IsReady },
            { "leads", status?.Sum(static group => group.Role == "leader" ? 1 : 0) },
            { "commitsPerSecond", CommitsPerSecond(now, before, node) },
            { "keys", status?.Sum(static group => group.Keys) },
            { "locks", status?.Sum(static group => group.LocksHeld) },
            { "persistent", Bytes.Of(status?.PersistentBytes) },
            { "ephemeral", Bytes.Of(status?.EphemeralBytes) },
            { "log", Bytes.Of(status?.LogBytes) },
            { "memory", Bytes.Of(status?.WorkingSetBytes) },
            { "problem", now.Reports[node].Problem ?? (status is { IsReady: false } ? status.Reason : null) },
        };
    }

    /// <summary>Entries that were committed in the groups that the node leads; null: no reading before.</summary>
    private static double? CommitsPerSecond(Reading now, Reading? before, int node)
    {
        if (before?.Reports[node].Status is not { } old || now.Reports[node].Status is not { } current)
        {
            return null;
        }

        double seconds = TimeProvider.System.GetElapsedTime(before.At, now.At).TotalSeconds;
        long entries = current.Groups
            .Where(static group => group.Role == "leader")
            .Sum(group => group.CommitIndex - (Find(old, group) ?? group).CommitIndex);
        return seconds > 0 ? Math.Round(Math.Max(0, entries) / seconds, 1) : null;
    }

    private static GroupStatus? Find(NodeStatus node, GroupStatus group) => node.Groups.FirstOrDefault(
        past => past.IsEphemeral == group.IsEphemeral && past.Partition == group.Partition);

    /// <summary>What all nodes said at one moment. Immutable.</summary>
    /// <param name="At">A timestamp of the monotonic clock.</param>
    /// <param name="Reports">One for each node.</param>
    private sealed record Reading(long At, NodeReport[] Reports);
}
