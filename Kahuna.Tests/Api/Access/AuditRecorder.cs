using System.Collections.Concurrent;
using Kahuna.Server.Access;

namespace Kahuna.Tests.Api.Access;

/// <summary>Keeps what is audited. Any thread.</summary>
internal sealed class AuditRecorder : IAuditLog
{
    private readonly ConcurrentQueue<(string User, string Action, string Subject, string Result)> _lines = new();

    public IReadOnlyCollection<(string User, string Action, string Subject, string Result)> Lines => _lines;

    public void Write(Caller caller, string action, string subject, string result) =>
        _lines.Enqueue((caller.Name, action, subject, result));
}
