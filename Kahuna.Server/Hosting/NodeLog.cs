using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting;

/// <summary>Everything that a node logs of itself. Stateless.</summary>
internal static partial class NodeLog
{
    [LoggerMessage(EventId = 1, Level = LogLevel.Information, Message = "Node {Node} of cluster {Cluster} serves {Address}; listens on {Listen}; data in {Directory}; {Partitions} partition(s).")]
    public static partial void Started(this ILogger logger, NodeId node, string cluster, Uri address, string listen, string directory, int partitions);

    /// <summary>What an operator should look at, with its fields.</summary>
    public static void Attention(this ILogger logger, ReportLine line) => logger.Log(LogLevel.Warning, new EventId(2, nameof(Attention)), line, null, static (line, _) => line.ToString());

    /// <summary>A group serves nothing any more on this node: a rule was broken, or its data cannot be used.</summary>
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

    [LoggerMessage(EventId = 3, Level = LogLevel.Critical, Message = "{Group} has stopped: a rule of the program is broken. It serves nothing any more; keep a copy of the data directory and report this. Its log is dropped when the node's log has grown to half of --log-limit; then this node starts with --rebuild only.")]
    private static partial void PartitionFailed(this ILogger logger, string group, Exception error);

    [LoggerMessage(EventId = 4, Level = LogLevel.Critical, Message = "The node stops: {Reason}")]
    public static partial void NodeDead(this ILogger logger, string reason);

    /// <summary>What the partitions and the state thread are doing, with its fields.</summary>
    public static void Progress(this ILogger logger, ReportLine line) => logger.Log(LogLevel.Information, new EventId(5, nameof(Progress)), line, null, static (line, _) => line.ToString());

    [LoggerMessage(EventId = 6, Level = LogLevel.Warning, Message = "{LeftOut} lines like the one before were left out since it was last written.")]
    public static partial void LinesLeftOut(this ILogger logger, long leftOut);

    [LoggerMessage(EventId = 7, Level = LogLevel.Information, Message = "Node {Leader} leads {Groups} ({Count} group(s)) since term {Term}.")]
    public static partial void Leads(this ILogger logger, NodeId leader, string groups, int count, ulong term);

    [LoggerMessage(EventId = 8, Level = LogLevel.Warning, Message = "No leader is known of {Groups} ({Count} group(s)); the last known term is {Term}.")]
    public static partial void LeaderLost(this ILogger logger, string groups, int count, ulong term);

    [LoggerMessage(EventId = 9, Level = LogLevel.Warning, Message = "No majority: this node reaches {Reached} of {Nodes} nodes, itself included. Nothing can be written here until it reaches {Needed}.")]
    public static partial void MajorityLost(this ILogger logger, int reached, int nodes, int needed);

    [LoggerMessage(EventId = 10, Level = LogLevel.Information, Message = "A majority is reached: this node reaches {Reached} of {Nodes} nodes, itself included.")]
    public static partial void MajorityReached(this ILogger logger, int reached, int nodes);

    [LoggerMessage(EventId = 11, Level = LogLevel.Information, Message = "The node is restored and votes again.")]
    public static partial void Restored(this ILogger logger);

    [LoggerMessage(EventId = 12, Level = LogLevel.Warning, Message = "That this node is restored could not be recorded, so it does not vote yet: {Reason}")]
    public static partial void RestoredNotRecorded(this ILogger logger, string reason);

    [LoggerMessage(EventId = 13, Level = LogLevel.Warning, Message = "Clients are not authenticated: whoever reaches {Listen} can read and change everything. Keep these addresses inside of a trusted network.")]
    public static partial void OpenToTheNetwork(this ILogger logger, string listen);

    [LoggerMessage(EventId = 14, Level = LogLevel.Warning, Message = "{Part} {Certificate} ends on {End:yyyy-MM-dd HH:mm} UTC, in {Days} day(s). Replace its files; a restart is not needed.")]
    public static partial void CertificateEndsSoon(this ILogger logger, string part, string certificate, DateTime end, int days);

    [LoggerMessage(EventId = 15, Level = LogLevel.Critical, Message = "{Part} {Certificate} ended on {End:yyyy-MM-dd HH:mm} UTC: connections with clients and other nodes are refused. Replace its files; a restart is not needed.")]
    public static partial void CertificateEnded(this ILogger logger, string part, string certificate, DateTime end);

    [LoggerMessage(EventId = 16, Level = LogLevel.Information, Message = "The certificate was read again: {Certificate}, valid until {End:yyyy-MM-dd HH:mm} UTC. New connections use it.")]
    public static partial void CertificateReloaded(this ILogger logger, string certificate, DateTime end);

    [LoggerMessage(EventId = 17, Level = LogLevel.Error, Message = "The files of the certificate have changed and cannot be used, so the former one stays in use: {Reason}")]
    public static partial void CertificateNotReloaded(this ILogger logger, string reason);

    [LoggerMessage(EventId = 18, Level = LogLevel.Critical, Message = "Unexpected error in {Where}; the process ends with exit code 1. Keep the data directory and report this.")]
    public static partial void Unexpected(this ILogger logger, string where, Exception error);

    [LoggerMessage(EventId = 19, Level = LogLevel.Warning, Message = "The certificate {Certificate} of this node is not under an authority of --trusted-ca: {Reason}. Nodes with the same --trusted-ca refuse it.")]
    public static partial void CertificateNotUnderTrustedCa(this ILogger logger, string certificate, string reason);

    [LoggerMessage(EventId = 20, Level = LogLevel.Warning, Message = "This node listens on {Listen} only, which can be reached from this machine only, and announces {Address}. Unless that name stands for this machine's loopback address, or a proxy forwards it, leave --listen out.")]
    public static partial void ClosedToTheNetwork(this ILogger logger, string listen, Uri address);

    [LoggerMessage(EventId = 21, Level = LogLevel.Critical, Message = "{Group} has stopped on this node, and the other groups go on: {Reason}")]
    private static partial void PartitionDamaged(this ILogger logger, string group, string reason);

    [LoggerMessage(EventId = 22, Level = LogLevel.Warning, Message = "The node waits for its development certificates: another process holds {Lock}. It goes on when that process is done, or has ended.")]
    public static partial void WaitsForCertificates(this ILogger logger, string @lock);
}
