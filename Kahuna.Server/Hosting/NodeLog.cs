using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting;

/// <summary>The log events of a node. Stateless.</summary>
internal static partial class NodeLog
{
    [LoggerMessage(
        EventId = 1,
        Level = LogLevel.Information,
        Message =
            "Node {Node} of cluster {Cluster} serves {Address}; listens on {Listen}; data in "
                + "{Directory}; {Partitions} partition(s).")]
    public static partial void Started(
        this ILogger logger, NodeId node, string cluster, Uri address, string listen, string directory, int partitions);

    /// <summary>A warning for the operator, with its fields.</summary>
    public static void Attention(this ILogger logger, ReportLine line) =>
        logger.Log(
            LogLevel.Warning, new EventId(2, nameof(Attention)), line, null, static (line, _) => line.ToString());

    /// <summary>Logs that a group has stopped on this node, because of a broken invariant or unusable data.</summary>
    public static void PartitionStopped(this ILogger logger, string group, Exception error)
    {
        if (error is GroupDamagedException)
        {
            logger.PartitionDamaged(group, error.Message);
        }
        else
        {
            logger.PartitionFailed(group, error);
        }
    }

    [LoggerMessage(
        EventId = 3,
        Level = LogLevel.Critical,
        Message =
            "{Group} has stopped on a broken invariant, which is a bug of the server. This node no longer serves it; "
                + "keep a copy of the data directory and report this. Its log is dropped once the node's log reaches "
                + "half of --log-limit; from then on the node starts only with --rebuild.")]
    private static partial void PartitionFailed(this ILogger logger, string group, Exception error);

    [LoggerMessage(EventId = 4, Level = LogLevel.Critical, Message = "The node stops: {Reason}")]
    public static partial void NodeDead(this ILogger logger, string reason);

    /// <summary>Progress of partitions and checkpoints, with its fields.</summary>
    public static void Progress(this ILogger logger, ReportLine line) =>
        logger.Log(
            LogLevel.Information, new EventId(5, nameof(Progress)), line, null, static (line, _) => line.ToString());

    [LoggerMessage(
        EventId = 6,
        Level = LogLevel.Warning,
        Message = "{LeftOut} lines like the one above were suppressed since it was last written.")]
    public static partial void LinesLeftOut(this ILogger logger, long leftOut);

    [LoggerMessage(
        EventId = 7,
        Level = LogLevel.Information,
        Message = "Node {Leader} leads {Groups} ({Count} group(s)) since term {Term}.")]
    public static partial void Leads(this ILogger logger, NodeId leader, string groups, int count, ulong term);

    [LoggerMessage(
        EventId = 8,
        Level = LogLevel.Warning,
        Message = "No leader is known for {Groups} ({Count} group(s)); the last known term is {Term}.")]
    public static partial void LeaderLost(this ILogger logger, string groups, int count, ulong term);

    [LoggerMessage(
        EventId = 9,
        Level = LogLevel.Warning,
        Message =
            "No majority: this node reaches {Reached} of {Nodes} nodes, itself included. Nothing can be written "
                + "here until it reaches {Needed}.")]
    public static partial void MajorityLost(this ILogger logger, int reached, int nodes, int needed);

    [LoggerMessage(
        EventId = 10,
        Level = LogLevel.Information,
        Message = "Majority reached: this node reaches {Reached} of {Nodes} nodes, itself included.")]
    public static partial void MajorityReached(this ILogger logger, int reached, int nodes);

    [LoggerMessage(EventId = 11, Level = LogLevel.Information, Message = "The node is restored and votes again.")]
    public static partial void Restored(this ILogger logger);

    [LoggerMessage(
        EventId = 12,
        Level = LogLevel.Warning,
        Message = "Cannot record that this node is restored, so it does not vote yet: {Reason}")]
    public static partial void RestoredNotRecorded(this ILogger logger, string reason);

    [LoggerMessage(
        EventId = 13,
        Level = LogLevel.Warning,
        Message =
            "Clients are not authenticated: anyone who can reach {Listen} can read and change all data. Keep these "
                + "addresses inside a trusted network.")]
    public static partial void OpenToTheNetwork(this ILogger logger, string listen);

    [LoggerMessage(
        EventId = 18,
        Level = LogLevel.Critical,
        Message =
            "Unexpected error in {Where}; the process ends with exit code 1. Keep the data directory and report this.")]
    public static partial void Unexpected(this ILogger logger, string where, Exception error);

    [LoggerMessage(
        EventId = 20,
        Level = LogLevel.Warning,
        Message =
            "This node listens only on {Listen}, which is reachable only from this machine, but announces {Address}. "
                + "Leave --listen out, unless that name resolves to a loopback address here or a proxy forwards it.")]
    public static partial void ClosedToTheNetwork(this ILogger logger, string listen, Uri address);

    [LoggerMessage(
        EventId = 23,
        Level = LogLevel.Information,
        Message =
            "The cluster secret was read again: the node knows {Secrets} and proves with the first one in new "
                + "connections.")]
    public static partial void SecretReloaded(this ILogger logger, int secrets);

    [LoggerMessage(
        EventId = 24,
        Level = LogLevel.Error,
        Message = "The changed file with the cluster secret is unusable, so what was read before counts: {Reason}")]
    public static partial void SecretNotReloaded(this ILogger logger, string reason);

    /// <summary>A line of the audit log, with its fields, where it has no file of its own.</summary>
    public static void Audit(this ILogger logger, ReportLine line) =>
        logger.Log(
            LogLevel.Information, new EventId(25, nameof(Audit)), line, null, static (line, _) => line.ToString());

    [LoggerMessage(
        EventId = 26,
        Level = LogLevel.Error,
        Message =
            "The audit log cannot be written; lines are dropped, and the next one that is written tells how many: "
                + "{Reason}")]
    public static partial void AuditLogFailed(this ILogger logger, string reason);

    [LoggerMessage(
        EventId = 40,
        Level = LogLevel.Warning,
        Message = "The metrics could not be sent (--otlp-endpoint); the next ones will be tried: {Reason}")]
    public static partial void MetricsNotSent(this ILogger logger, string reason);

    [LoggerMessage(
        EventId = 41,
        Level = LogLevel.Information,
        Message = "The token for metrics was read again.")]
    public static partial void MetricsTokenReloaded(this ILogger logger);

    [LoggerMessage(
        EventId = 42,
        Level = LogLevel.Error,
        Message = "The changed file with the token for metrics is unusable, so the former token counts: {Reason}")]
    public static partial void MetricsTokenNotReloaded(this ILogger logger, string reason);

    [LoggerMessage(
        EventId = 21,
        Level = LogLevel.Critical,
        Message = "{Group} has stopped on this node; the other groups continue: {Reason}")]
    private static partial void PartitionDamaged(this ILogger logger, string group, string reason);
}
