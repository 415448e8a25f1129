using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Raft;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// Keeps a node that was paused from beginning a session twice (docs/adr/0020-failover.md). Requests that were buffered
/// during the pause may have been retried, applied and forgotten elsewhere; they look new here. For a while nothing
/// that opens a session is taken, except by a leader that led before the pause and has found out that it still does.
/// Owned by a group's <see cref="PendingRequests"/>; not thread-safe.
/// </summary>
internal sealed class PauseGuard(TurnClock clock)
{
    private long _servingSinceMs;
    private long _askedMs;
    private long _confirmedMs;
    private ulong _ticket;

    /// <summary>
    /// Whether a command that opens a session is refused now. A leader asks the others, so that it soon is not.
    /// </summary>
    public bool RefusesOpening(RaftCore core, bool isServing)
    {
        if (!clock.IsAfterPause)
        {
            return false;
        }

        if (!isServing || core.Role != RaftRole.Leader || _servingSinceMs >= clock.ResumedMs)
        {
            return true;
        }

        if (_askedMs != clock.ResumedMs && core.TryRead(out _ticket))
        {
            _askedMs = clock.ResumedMs;
        }

        return _confirmedMs != clock.ResumedMs;
    }

    /// <summary>This node leads from now on.</summary>
    public void BeginServing() => _servingSinceMs = clock.NowMs;

    /// <summary>This node leads no more: the round that it has asked for is not confirmed.</summary>
    public void LoseLeadership()
    {
        _ticket = 0;
        _askedMs = 0;
        _confirmedMs = 0;
    }

    /// <summary>A majority has said since the round with this ticket began that this node leads.</summary>
    public void Confirm(ulong ticket)
    {
        if (_ticket != 0 && ticket >= _ticket)
        {
            _confirmedMs = _askedMs;
        }
    }
}
