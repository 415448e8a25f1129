namespace Kahuna.Server.Access;

/// <summary>Records nothing. Stateless.</summary>
internal sealed class NoAuditLog : IAuditLog
{
    private NoAuditLog()
    {
    }

    public static NoAuditLog Instance { get; } = new();

    public void Write(Caller caller, string action, string subject, string result)
    {
    }
}
