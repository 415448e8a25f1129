namespace Kahuna.Server.Hosting.Certificates;

/// <summary>The log events of a node's certificates. Stateless.</summary>
internal static partial class CertificateLog
{
    [LoggerMessage(
        EventId = 14,
        Level = LogLevel.Warning,
        Message =
            "{Part} {Certificate} expires on {End:yyyy-MM-dd HH:mm} UTC, in {Days} day(s). Replace its "
                + "files; a restart is not needed.")]
    public static partial void CertificateEndsSoon(
        this ILogger logger, string part, string certificate, DateTime end, int days);

    [LoggerMessage(
        EventId = 15,
        Level = LogLevel.Critical,
        Message =
            "{Part} {Certificate} expired on {End:yyyy-MM-dd HH:mm} UTC: {Refused} are refused. Replace its files; a "
                + "restart is not needed.")]
    public static partial void CertificateEnded(
        this ILogger logger, string part, string certificate, DateTime end, string refused);

    [LoggerMessage(
        EventId = 16,
        Level = LogLevel.Information,
        Message =
            "The certificate was reloaded: {Certificate}, valid until {End:yyyy-MM-dd HH:mm} "
                + "UTC. New connections use it.")]
    public static partial void CertificateReloaded(this ILogger logger, string certificate, DateTime end);

    [LoggerMessage(
        EventId = 17,
        Level = LogLevel.Error,
        Message = "The changed certificate files are unusable, so the previous certificate stays in use: {Reason}")]
    public static partial void CertificateNotReloaded(this ILogger logger, string reason);

    [LoggerMessage(
        EventId = 19,
        Level = LogLevel.Warning,
        Message =
            "The certificate {Certificate} of this node does not chain to an authority of --trusted-ca: {Reason}. "
                + "Nodes with the same --trusted-ca refuse it.")]
    public static partial void CertificateNotUnderTrustedCa(this ILogger logger, string certificate, string reason);

    [LoggerMessage(
        EventId = 22,
        Level = LogLevel.Warning,
        Message =
            "The node waits for its development certificates: another process holds {Lock}. It continues when "
                + "that process is done or ends.")]
    public static partial void WaitsForCertificates(this ILogger logger, string @lock);

    [LoggerMessage(
        EventId = 29,
        Level = LogLevel.Error,
        Message = "The authorities of client certificates were not read again, so those read before count: {Reason}")]
    public static partial void ClientAuthoritiesNotReloaded(this ILogger logger, string reason);

    [LoggerMessage(
        EventId = 30,
        Level = LogLevel.Information,
        Message = "The authorities of client certificates were read again; there are {Count}.")]
    public static partial void ClientAuthoritiesReloaded(this ILogger logger, int count);
}
