using Kahuna.Wire.Commands;

namespace Kahuna.Server.Cluster;

/// <summary>
/// The log events of a <see cref="TransactionSettler"/>. Their category is throttled, because clients can cause them at
/// any rate. Stateless; any thread.
/// </summary>
internal static partial class SettlingLog
{
    /// <summary>The category of these events.</summary>
    public const string Category = "Kahuna.Transactions";

    [LoggerMessage(
        EventId = 8001,
        Level = LogLevel.Warning,
        Message =
            "Transaction {Id}, which its coordinator has left, cannot be ended yet: {Step} failed with {Status}: "
                + "{Reason}. The node tries again.")]
    public static partial void NotSettled(
        this ILogger logger, TransactionId id, string step, string status, string? reason);

    [LoggerMessage(EventId = 8002, Level = LogLevel.Error, Message = "Transaction {Id} could not be ended.")]
    public static partial void SettlingFailed(this ILogger logger, TransactionId id, Exception error);
}
