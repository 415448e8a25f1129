using Microsoft.Extensions.Logging;

namespace Kahuna.Client.Locks;

/// <summary>Every event about locks that the client logs. Stateless, any thread.</summary>
internal static partial class LockLog
{
    [LoggerMessage(
        20,
        LogLevel.Warning,
        "The handle of the lock \"{Resource}\" (token {Token}) was neither disposed nor kept; its lease is renewed no more, "
        + "and others get the lock when it ends. Keep the handle, and dispose it.")]
    public static partial void Forgotten(ILogger logger, string resource, long token);
}
