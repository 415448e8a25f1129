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
