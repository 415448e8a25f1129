using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// A leader's transfer of its leadership (thesis 3.10): to whom it may go, and when that member is asked to campaign.
/// It ends after an election timeout. Owned by one <see cref="Leadership"/>; not thread-safe.
/// </summary>
internal sealed class LeadershipTransfer(RaftConfig config, Members members, Replication replication)
{
    private NodeId _refusedBy;
    private int _ticks;
    private ulong _note;
    private bool _isAsked;

    /// <summary>The member that leadership is being transferred to, or none.</summary>
    public NodeId Target { get; private set; }

    /// <summary>Leadership is being transferred: proposals are refused.</summary>
    public bool IsOn => !Target.IsNone;

    /// <summary>A leadership begins.</summary>
    public void Begin()
    {
        _refusedBy = NodeId.None;
        End();
    }

    /// <summary>Nothing is transferred from here on.</summary>
    public void End()
    {
        Target = NodeId.None;
        _note = 0;
        _ticks = 0;
        _isAsked = false;
    }

    /// <summary>Counts one tick of a transfer. The target may be asked again.</summary>
    public void Tick(bool mayAskAgain)
    {
        _isAsked &= !mayAskAgain;
        if (IsOn && ++_ticks >= config.ElectionTicks)
        {
            _refusedBy = Target;
            End();
        }
    }

    /// <summary>Why leadership may not go to this member now.</summary>
    public TransferObstacle ObstacleOf(NodeId target) => target == members.Self
        ? TransferObstacle.Leads
        : replication.Find(target)?.Obstacle ?? TransferObstacle.NoVoter;

    /// <summary>This member has not reported a stalled disk for a long while.</summary>
    public bool IsSteady(NodeId member) => member == members.Self || replication.Find(member) is { IsSteady: true };

    /// <summary>
    /// The best member to lead in this node's place: of the active members that may take leadership, the one with the
    /// longest matching log. Avoids the last member that did not take leadership, if there is another.
    /// </summary>
    public NodeId Successor()
    {
        Progress? best = null;
        foreach (Progress other in replication.Others)
        {
            if (other.IsActive && ObstacleOf(other.Member) == TransferObstacle.None
                && (best is null
                    || best.Member == _refusedBy
                    || (other.Member != _refusedBy && other.Match > best.Match)))
            {
                best = other;
            }
        }

        return best?.Member ?? NodeId.None;
    }

    /// <summary>Starts to transfer leadership to <paramref name="target"/>, replacing an earlier target.</summary>
    public bool TryBegin(NodeId target, ulong note)
    {
        if (ObstacleOf(target) != TransferObstacle.None)
        {
            return false;
        }

        if (Target != target)
        {
            End();
            Target = target;
        }

        _note = note;
        return true;
    }

    /// <summary>Asks the target to campaign once it has the whole log. True when it was asked just now.</summary>
    public bool TryAsk(LogIndex last, Outbox outbox)
    {
        Progress? target = replication.Find(Target);
        if (target is { AwaitsSnapshot: true })
        {
            // The target will not catch up soon, so proposals must not wait for it.
            End();
            return false;
        }

        if (_isAsked || target?.Match != last)
        {
            return false;
        }

        outbox.SendNow(new() { Kind = RaftMessageKind.TimeoutNow, To = Target, Round = _note });
        _isAsked = true;
        return true;
    }
}

/// <summary>Why a leader may not transfer leadership to a member now.</summary>
internal enum TransferObstacle
{
    /// <summary>It may.</summary>
    None,

    /// <summary>The member is the leader itself.</summary>
    Leads,

    /// <summary>It is not a member that votes.</summary>
    NoVoter,

    /// <summary>It lost its log, and does not count before the leader has restored it.</summary>
    LostLog,

    /// <summary>It lacks entries that the leader no longer has, and needs a snapshot first.</summary>
    AwaitsSnapshot,

    /// <summary>Its disk stands still.</summary>
    IsStalled,

    /// <summary>It was paused a moment ago, and may be paused again.</summary>
    HasPaused,
}
