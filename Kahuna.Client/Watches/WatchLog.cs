using Microsoft.Extensions.Logging;

namespace Kahuna.Client.Watches;

/// <summary>What watches and caches log. Stateless, any thread.</summary>
internal static partial class WatchLog
{
    [LoggerMessage(21, LogLevel.Information, "The stream of watches to {Endpoint} ended: {Reason}")]
    public static partial void Moves(ILogger logger, Uri endpoint, string reason);

    [LoggerMessage(22, LogLevel.Error, "A handler of a cache's changes has failed; the cache goes on")]
    public static partial void HandlerFailed(ILogger logger, Exception failure);
}
