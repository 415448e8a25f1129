namespace Kahuna.Server.Storage;

/// <summary>
/// The log stopped for good because a write, a sync or a read failed. Nothing is persisted from then on. Immutable.
/// </summary>
internal sealed class LogFailedException(string message, Exception cause) : Exception(message, cause);
