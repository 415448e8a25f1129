using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// When a leader hands its leadership over, and to whom: to the preferred node of the partition, or to the best
/// follower. Owned by one group; not thread-safe.
/// </summary>
/// <param name="options">The preferred nodes, and how often it is looked.</param>
/// <param name="partition">The partition that the group serves.</param>
/// <param name="requests">Whether this node serves.</param>
/// <param name="applied">The group's state.</param>
/// <param name="comparison">Stamps the cluster's time.</param>
internal sealed class LeaderHandover(LoopOptions options, int partition, PendingRequests requests, AppliedState applied,
    StateComparison comparison)
{
    /// <summary>Doublings of the pause between attempts to hand leadership to the preferred node.</summary>
    private const int MovesMax = 7;

    /// <summary>The preferred node gets leadership when it lacks at most this many entries: a moment's worth.</summary>
    private const ulong LagMax = 64;

    private int _ticks;
    private int _moves;
    private LeaderMove? _asked;
    private Term _heldTerm;
    private int _heldTicks;
    private bool _isStopped;

    /// <summary>Leadership, or its term, has ended.</summary>
    public void Reset()
    {
        _ticks = 0;
        _moves = 0;
        End(MoveResult.Left);
    }

    /// <summary>The group has stopped.</summary>
    public void Stop()
    {
        _isStopped = true;
        End(MoveResult.Stopped);
    }

    /// <summary>
    /// Begins the transfer that an administrator wants, or answers why not. Of several the first one is carried out.
    /// </summary>
    public void Begin(RaftCore core, LeaderMove move)
    {
        NodeId target = move.ToPreferred ? options.PreferredLeader(partition)
            : move.To.IsNone ? core.Successor() : move.To;
        MoveResult result = _isStopped ? MoveResult.Stopped
            : core.Role != RaftRole.Leader ? MoveResult.NotLeader
            : requests.IsDraining ? MoveResult.Draining
            : !requests.IsServing || core.IsTransferring || _asked is not null ? MoveResult.Busy
            : target.IsNone ? MoveResult.NoSuccessor
            : ResultOf(core, target);
        (move.Target, move.Term) = (target, core.Term);
        if (result != MoveResult.Begun)
        {
            move.Answer(result);
            return;
        }

        // Placement moves leadership back within a second or so, unless the next leader keeps it for a while.
        HandOver(core, target, move.ToPreferred ? 0 : (ulong)options.MoveHoldTicks);
        _asked = move;
    }

    /// <summary>
    /// Another leader has asked this member to lead, and to keep leadership for some ticks before placement moves it.
    /// </summary>
    public void Asked(RaftCore core, ulong holdTicks)
    {
        if (core.Role is RaftRole.Candidate or RaftRole.Leader)
        {
            _heldTerm = core.Term;
            _heldTicks = (int)Math.Min(holdTicks, (ulong)options.MoveHoldTicks);
        }
    }

    /// <summary>A tick of a serving leader.</summary>
    public void Tick(RaftCore core)
    {
        if (!core.IsTransferring)
        {
            End(MoveResult.NotTaken);
        }

        if (_heldTicks > 0 && core.Term == _heldTerm)
        {
            _heldTicks--;
        }
        else if (++_ticks >= options.PlacementTicks << _moves && !requests.IsDraining)
        {
            _ticks = 0;
            MoveToPreferred(core);
        }
    }

    /// <summary>
    /// Begins to hand leadership to a member; not where it cannot take it. The cluster's time is stamped first: the
    /// next leader counts it on from there.
    /// </summary>
    public bool HandOver(RaftCore core, NodeId target, ulong holdTicks = 0)
    {
        if (!core.CanTransfer(target))
        {
            return false;
        }

        if (requests.IsServing && !core.IsTransferring && applied.HasDeadlines)
        {
            comparison.TryMark(core);
        }

        return core.TryTransfer(target, holdTicks);
    }

    private static MoveResult ResultOf(RaftCore core, NodeId target) => core.ObstacleOf(target) switch
    {
        TransferObstacle.Leads => MoveResult.Leads,
        TransferObstacle.NoVoter => MoveResult.NoVoter,
        TransferObstacle.AwaitsSnapshot or TransferObstacle.LostLog => MoveResult.Behind,
        TransferObstacle.IsStalled => MoveResult.Stalled,
        TransferObstacle.HasPaused => MoveResult.Paused,
        _ => core.IsActive(target) ? MoveResult.Begun : MoveResult.Silent,
    };

    private void End(MoveResult result)
    {
        _asked?.Answer(result);
        _asked = null;
    }

    private void MoveToPreferred(RaftCore core)
    {
        NodeId preferred = options.PreferredLeader(partition);
        if (preferred != options.Self && core.IsActive(preferred) && core.IsSteady(preferred)
            && core.MatchIndex(preferred).Value + LagMax >= core.LastIndex.Value)
        {
            // Writes wait while it lasts: a node that does not take leadership is asked less and less often.
            _moves = Math.Min(_moves + (HandOver(core, preferred) ? 1 : 0), MovesMax);
        }
    }
}
