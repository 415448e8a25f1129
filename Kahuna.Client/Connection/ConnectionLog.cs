using Microsoft.Extensions.Logging;

namespace Kahuna.Client.Connection;

/// <summary>Every event that the client logs. Stateless, any thread.</summary>
internal static partial class ConnectionLog
{
    [LoggerMessage(1, LogLevel.Information, "Connected to node {NodeId} at {Endpoint}")]
    public static partial void Connected(ILogger logger, int nodeId, Uri endpoint);

    [LoggerMessage(2, LogLevel.Warning, "The stream to {Endpoint} ended: {Reason}")]
    public static partial void Lost(ILogger logger, Uri endpoint, string reason);

    [LoggerMessage(3, LogLevel.Warning, "Cannot connect to {Endpoint}: {Reason}")]
    public static partial void CannotConnect(ILogger logger, Uri endpoint, string reason);

    [LoggerMessage(4, LogLevel.Information, "Node {NodeId} at {Endpoint} stops; new operations go elsewhere")]
    public static partial void GoesAway(ILogger logger, int nodeId, Uri endpoint);

    [LoggerMessage(
        5, LogLevel.Information, "Partition {Partition} ({Durability}) is led by node {NodeId} in term {Term}")]
    public static partial void LeaderChanged(ILogger logger, int partition, string durability, int nodeId, ulong term);

    [LoggerMessage(6, LogLevel.Warning, "The cluster's identity changed from {Before} to {After}; it was created anew")]
    public static partial void ClusterReplaced(ILogger logger, string before, string after);

    [LoggerMessage(7, LogLevel.Information, "{LeftOut} lines of event {Event} were left out since the last one")]
    public static partial void LeftOut(ILogger logger, int leftOut, int @event);
}
