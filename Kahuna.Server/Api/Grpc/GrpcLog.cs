namespace Kahuna.Server.Api.Grpc;

/// <summary>The log events of the gRPC endpoint. Any thread.</summary>
internal static partial class GrpcLog
{
    [LoggerMessage(EventId = 7001, Level = LogLevel.Error, Message = "The handler of {Method} failed.")]
    public static partial void HandlerFailed(ILogger logger, string method, Exception exception);

    [LoggerMessage(EventId = 7002, Level = LogLevel.Debug, Message = "The connection of a call of {Method} was lost.")]
    public static partial void CallLost(ILogger logger, string method, Exception exception);

    [LoggerMessage(EventId = 7003, Level = LogLevel.Warning, Message = "The connection of {Peer} is closed: its client resets more than {Burst} calls at once and {PerSecond} per second.")]
    public static partial void ConnectionClosed(ILogger logger, string peer, int burst, int perSecond);
}
