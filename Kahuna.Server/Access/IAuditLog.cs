namespace Kahuna.Server.Access;

/// <summary>
/// Records who did what, or tried to. Never waits for a disk and never throws: what cannot be kept is counted, and the
/// count is recorded later. Any thread.
/// </summary>
internal interface IAuditLog
{
    /// <summary>Records one action.</summary>
    /// <param name="caller">Who.</param>
    /// <param name="action">What, as a short name: <c>sign in</c>, <c>CreateUser</c>, <c>SetKeyValue</c>.</param>
    /// <param name="subject">On which key, user, role or token, as the caller sent it; never a value, a password or a
    /// token's text.</param>
    /// <param name="result">How it ended; a refusal begins as <see cref="AuditResults.Refused"/> does.</param>
    void Write(Caller caller, string action, string subject, string result);
}
