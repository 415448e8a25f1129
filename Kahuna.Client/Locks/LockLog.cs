using Microsoft.Extensions.Logging;

namespace Kahuna.Client.Locks;

/// <summary>The client's log events about locks. Stateless, any thread.</summary>
internal static partial class LockLog
{
    [LoggerMessage(
        20,
        LogLevel.Warning,
        "The handle of the lock \"{Resource}\" (token {Token}) was neither disposed nor kept; "
        + "its lease is no longer renewed, "
        + "and the lock is free when it ends. Keep the handle and dispose it.")]
    public static partial void Forgotten(ILogger logger, string resource, FencingToken token);
}
