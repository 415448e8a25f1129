namespace Kahuna.Server.Access;

/// <summary>
/// How an action ended, for the audit log: one of three words, and for a refusal the reason. Stateless.
/// </summary>
internal static class AuditResults
{
    /// <summary>It was carried out.</summary>
    public const string Done = "done";

    /// <summary>There was no answer in time: it may have been carried out, or may still be.</summary>
    public const string Unknown = "unknown";

    private const string RefusedPrefix = "refused: ";

    /// <summary>It was refused, or failed; nothing was done.</summary>
    public static string Refused(string sentence) => RefusedPrefix + sentence;

    /// <summary>True for a refusal. Of those, only a number per second is recorded, and the rest counted.</summary>
    public static bool IsRefused(string result) => result.StartsWith(RefusedPrefix, StringComparison.Ordinal);
}
