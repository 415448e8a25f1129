using Kahuna.Server.Raft;

namespace Kahuna.Server.Partitions;

/// <summary>
/// Keeps a node that stood still from beginning a session once more. What lay there meanwhile may have been repeated elsewhere, done and forgotten, and looks as if it had just come. For a while
/// nothing that opens a session is taken, except by a leader that was one before and has found out that it still is. Owned by a partition's <see cref="ClientDesk"/>; not thread-safe.
/// </summary>
internal sealed class StandstillGuard(TurnOutput output)
{
    private long _servingSinceMs;
    private long _askedMs;
    private long _confirmedMs;
    private ulong _ticket;

    /// <summary>Whether a command that opens a session is refused now. A leader asks the others, so that it soon is not.</summary>
    public bool RefusesOpening(RaftCore core, bool isServing)
    {
        if (!output.IsLate)
        {
            return false;
        }

        if (!isServing || core.Role != RaftRole.Leader || _servingSinceMs >= output.SteadySinceMs)
        {
            return true;
        }

        if (_askedMs != output.SteadySinceMs && core.TryRead(out _ticket))
        {
            _askedMs = output.SteadySinceMs;
        }

        return _confirmedMs != output.SteadySinceMs;
    }

    /// <summary>This node leads from now on.</summary>
    public void BeginServing() => _servingSinceMs = output.NowMs;

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
