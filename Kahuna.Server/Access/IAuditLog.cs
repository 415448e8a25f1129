namespace Kahuna.Server.Access;

/// <summary>
/// Records who did what, or tried to. Never waits for a disk and never throws: what cannot be kept is counted, and the
/// count is recorded later. Any thread.
/// </summary>
internal interface IAuditLog
{
    /// <summary>Records one action.</summary>
    /// <param name="caller">Who.</param>
    /// <param name="action">What, as lower-case words: <c>sign in</c>, <c>create user</c>, <c>set</c>.</param>
    /// <param name="subject">On which key, user, role or token, as the caller sent it; never a value, a password or a
    /// token's text.</param>
    /// <param name="result">How it ended, in the words of <see cref="AuditResults"/>.</param>
    void Write(Caller caller, string action, string subject, string result);
}
