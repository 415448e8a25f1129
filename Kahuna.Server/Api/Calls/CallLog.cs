namespace Kahuna.Server.Api.Calls;

/// <summary>The log events of calls. Any thread.</summary>
internal static partial class CallLog
{
    [LoggerMessage(EventId = 7001, Level = LogLevel.Error, Message = "The handler of {Method} failed.")]
    public static partial void HandlerFailed(ILogger logger, string method, Exception exception);

    [LoggerMessage(EventId = 7002, Level = LogLevel.Debug, Message = "The connection of a call of {Method} was lost.")]
    public static partial void CallLost(ILogger logger, string method, Exception? exception);

    [LoggerMessage(
        EventId = 7003,
        Level = LogLevel.Warning,
        Message =
            "The connection of {Peer} is closed: its client resets more than {Burst} calls at once "
                + "and {PerSecond} per second.")]
    public static partial void ConnectionClosed(ILogger logger, string peer, int burst, int perSecond);

    [LoggerMessage(
        EventId = 7004,
        Level = LogLevel.Warning,
        Message = "A request of {Peer} for {Method} could not be read: {Reason}")]
    public static partial void RequestMalformed(ILogger logger, string peer, string method, string reason);
}
