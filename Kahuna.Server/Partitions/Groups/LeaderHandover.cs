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

    /// <summary>Leadership, or its term, has ended.</summary>
    public void Reset()
    {
        _ticks = 0;
        _moves = 0;
    }

    /// <summary>A tick of a serving leader.</summary>
    public void Tick(RaftCore core)
    {
        if (++_ticks >= options.PlacementTicks << _moves && !requests.IsDraining)
        {
            _ticks = 0;
            MoveToPreferred(core);
        }
    }

    /// <summary>
    /// Begins to hand leadership to a member; not where it cannot take it. The cluster's time is stamped first: the
    /// next leader counts it on from there.
    /// </summary>
    public bool HandOver(RaftCore core, NodeId target)
    {
        if (!core.CanTransfer(target))
        {
            return false;
        }

        if (requests.IsServing && !core.IsTransferring && applied.HasDeadlines)
        {
            comparison.TryMark(core);
        }

        return core.TryTransfer(target);
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
