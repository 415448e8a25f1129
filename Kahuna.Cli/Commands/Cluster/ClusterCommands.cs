using Kahuna.Cli.Diagnosis;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Results;
using Kahuna.Client;
using Kahuna.Client.Outcomes;

namespace Kahuna.Cli.Commands.Cluster;

/// <summary>The commands that describe the cluster: status, members, partitions and leaders. Static.</summary>
internal static class ClusterCommands
{
    public static CliCommand Status() => new("status", "Show the state of every node, for administrators", async call =>
    {
        ClusterDescription cluster = await DescribeAsync(call).ConfigureAwait(false);
        using NodeProbe probe = new(await call.ClientOptionsAsync().ConfigureAwait(false));
        NodeReport[] reports = await probe.ReadAsync(
            cluster.Nodes.Select(static node => node.Endpoint), call.Stop).ConfigureAwait(false);
        await call.Output.WriteAllAsync(
            ["node", "endpoint", "ready", "version", "leads", "keys", "memory", "log", "certificate", "problem"],
            cluster.Nodes.Zip(reports, RecordOf)).ConfigureAwait(false);
        return reports.All(static report => report.IsRefused)
            ? Refused(call)
            : reports.All(static report => report.Status is { IsReady: true }) ? ExitCode.Done : ExitCode.NotThere;
    });

    public static CliCommand Members() => new("members", "List the nodes of the cluster", async call =>
    {
        ClusterDescription cluster = await DescribeAsync(call).ConfigureAwait(false);
        await call.Output.WriteAllAsync(
            ["node", "endpoint", "connected"],
            cluster.Nodes.Select(static node => new Record
            {
                { "node", node.Id },
                { "endpoint", node.Endpoint.GetLeftPart(UriPartial.Authority) },
                { "connected", node.IsConnected },
            })).ConfigureAwait(false);
        return ExitCode.Done;
    });

    public static CliCommand Partitions() => new("partitions", "List the partitions with their leaders", async call =>
    {
        ClusterDescription cluster = await DescribeAsync(call).ConfigureAwait(false);
        await call.Output.WriteAllAsync(
            ["partition", "leader", "endpoint", "term"],
            cluster.Partitions.Select(partition => new Record
            {
                { "partition", partition.Number },
                { "leader", partition.LeaderNodeId },
                { "endpoint", EndpointOf(cluster, partition.LeaderNodeId) },
                { "term", partition.Term },
            })).ConfigureAwait(false);
        return cluster.Partitions.All(static partition => partition.LeaderNodeId is not null)
            ? ExitCode.Done
            : ExitCode.NotThere;
    });

    public static CliCommand Leaders() => new("leaders", "Show how many partitions each node leads", async call =>
    {
        ClusterDescription cluster = await DescribeAsync(call).ConfigureAwait(false);
        await call.Output.WriteAllAsync(
            ["node", "endpoint", "leads", "partitions"],
            cluster.Nodes.Select(node =>
            {
                int[] led =
                [
                    .. cluster.Partitions.Where(partition => partition.LeaderNodeId == node.Id)
                        .Select(static partition => partition.Number),
                ];
                return new Record
                {
                    { "node", node.Id },
                    { "endpoint", node.Endpoint.GetLeftPart(UriPartial.Authority) },
                    { "leads", led.Length },
                    { "partitions", led.Select(static number => (object)number).ToArray() },
                };
            })).ConfigureAwait(false);
        return ExitCode.Done;
    });

    /// <summary>Describes the cluster when the first node has answered and said who the others are.</summary>
    internal static async Task<ClusterDescription> DescribeAsync(CommandCall call)
    {
        KahunaClient client = await call.ConnectAsync().ConfigureAwait(false);
        return await client.DescribeAsync(call.Stop).ConfigureAwait(false);
    }

    /// <summary>Says that the state of nodes is for administrators.</summary>
    internal static int Refused(CommandCall call)
    {
        call.Note("The state of nodes is for administrators. Sign in as a user with the role admin.");
        return ExitCode.Denied;
    }

    private static Record RecordOf(NodeDescription node, NodeReport report)
    {
        NodeStatus? status = report.Status;
        return new Record
        {
            { "node", node.Id },
            { "endpoint", node.Endpoint.GetLeftPart(UriPartial.Authority) },
            { "ready", status?.IsReady },
            { "version", status?.Version },
            { "leads", status?.Sum(static group => group.Role == "leader" ? 1 : 0) },
            { "keys", status?.Sum(static group => group.Keys) },
            { "memory", Bytes.Of(status?.WorkingSetBytes) },
            { "log", Bytes.Of(status?.LogBytes) },
            { "certificate", status?.CertificateLeft },
            { "problem", report.Problem ?? (status is { IsReady: false } ? status.Reason : null) },
        };
    }

    private static string? EndpointOf(ClusterDescription cluster, int? node) =>
        cluster.Nodes.FirstOrDefault(found => found.Id == node)?.Endpoint.GetLeftPart(UriPartial.Authority);
}
