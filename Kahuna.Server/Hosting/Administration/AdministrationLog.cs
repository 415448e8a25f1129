namespace Kahuna.Server.Hosting.Administration;

/// <summary>The log events of the first administrator and of the issuer's keys. Stateless.</summary>
internal static partial class AdministrationLog
{
    [LoggerMessage(
        EventId = 27,
        Level = LogLevel.Information,
        Message = "The first administrator, '{User}', was made from the bootstrap file; remove the file.")]
    public static partial void FirstAdministratorMade(this ILogger logger, string user);

    [LoggerMessage(
        EventId = 28,
        Level = LogLevel.Information,
        Message = "The bootstrap file was ignored: the cluster has users. Remove the file.")]
    public static partial void BootstrapIgnored(this ILogger logger);

    [LoggerMessage(
        EventId = 36,
        Level = LogLevel.Warning,
        Message =
            "This node has voted for a new password of the administrator '{User}', as the request in its data "
                + "directory says; it holds when {Needed} of {Nodes} nodes have voted.")]
    public static partial void RecoveryVoted(this ILogger logger, string user, int needed, int nodes);

    [LoggerMessage(
        EventId = 37,
        Level = LogLevel.Warning,
        Message =
            "The administrator '{User}' has the password of the request in this node's data directory, for which a "
                + "majority of the nodes has voted. The request is removed.")]
    public static partial void AdministratorRecovered(this ILogger logger, string user);

    [LoggerMessage(
        EventId = 38,
        Level = LogLevel.Error,
        Message =
            "The request for a new password of the administrator '{User}' is more than an hour old, and no majority of "
                + "the nodes has voted for it. It is removed; make a new one.")]
    public static partial void RecoveryTooOld(this ILogger logger, string user);

    [LoggerMessage(
        EventId = 31,
        Level = LogLevel.Error,
        Message =
            "The keys of the issuer of JSON Web Tokens cannot be read from {Source}, so those that are known count: "
                + "{Reason}")]
    public static partial void JwtKeysNotRead(this ILogger logger, string source, string reason);

    [LoggerMessage(
        EventId = 32,
        Level = LogLevel.Information,
        Message = "The issuer of JSON Web Tokens has {Count} key(s), read from {Source}.")]
    public static partial void JwtKeysRead(this ILogger logger, int count, string source);
}
