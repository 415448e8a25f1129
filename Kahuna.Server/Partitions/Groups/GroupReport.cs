using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// What others may know of a group: its status goes to a port when it changes, the rest may be read at any time.
/// Written by the group's loop; read by any thread.
/// </summary>
internal sealed class GroupReport(int index, LoopOptions options, ILeadershipSink leadership)
{
    private readonly List<FollowerLag> _lags = [];
    private readonly CatchUp _catchUp = new(options.CaughtUpTicks, options.LagTicks);
    private PartitionMetrics _metrics = PartitionMetrics.None;
    private PartitionStatus _published;
    private long _commit;
    private bool _canRejoin;

    /// <summary>This node has not caught up with its leader. For the loop.</summary>
    public bool Lags => !_catchUp.IsCaughtUp;

    /// <summary>Metrics as of the last tick.</summary>
    public PartitionMetrics Metrics => Volatile.Read(ref _metrics);

    /// <summary>Commit index as of the last turn.</summary>
    public LogIndex CommitIndex
    {
        get => new((ulong)Volatile.Read(ref _commit));
        set => Volatile.Write(ref _commit, (long)value.Value);
    }

    /// <summary>This node was rebuilt, and knows enough again to vote.</summary>
    public bool CanRejoin
    {
        get => Volatile.Read(ref _canRejoin);
        set => Volatile.Write(ref _canRejoin, value);
    }

    /// <summary>Tells the status if it has changed.</summary>
    public void Publish(in PartitionStatus status)
    {
        if (status != _published)
        {
            _published = status;
            leadership.LeadershipChanged(index, status);
        }
    }

    /// <summary>
    /// Stops the node when a leader has sent an entry of a feature level that this build does not support.
    /// </summary>
    public void LookAtLevel(RaftCore core, GroupId group, NodeId leader)
    {
        if (core.UnknownLevel is { } level)
        {
            leadership.StorageFailed(new FeatureLevelException(
                level, options.StateLimits.Features, $"in an entry of {group.Name} from node {leader}"));
        }
    }

    /// <summary>An epoch of an ephemeral group begins, empty.</summary>
    public void BeginEpoch()
    {
        _catchUp.Reset();
        CommitIndex = default;
    }

    /// <inheritdoc cref="CatchUp.Tick"/>
    public void Follow(LogIndex reached, LogIndex committed) => _catchUp.Tick(reached, committed);

    /// <summary>A tick: takes the metrics anew if something has changed.</summary>
    public void Tick(RaftCore core, AppliedState applied, LogIndex stored, PendingRequests pending)
    {
        RequestCounts requests = new(
            pending.Holds, pending.PendingWrites, pending.PendingReads, pending.LongPolls);
        PartitionMetrics metrics = _metrics;
        IReadOnlyList<FollowerLag> followers = LagsOf(core, metrics.Followers);
        if (metrics.Applied != applied.Index || metrics.Stored != stored || metrics.LogStart != core.LogStart
            || metrics.MayVote != core.IsVoting || metrics.IsStalled != core.IsStalled
            || metrics.Requests != requests || metrics.Accounts != applied.State.Accounts
            || metrics.Followers != followers)
        {
            StateMachine state = applied.State;
            StateCounts counts = state.Counts;
            metrics = new PartitionMetrics(applied.Index, state.Digest, counts.Keys, stored, core.LogStart,
                core.IsVoting,
                state.Sessions.Metrics, state.Locks.Metrics, state.KeyValues.Prepared.Counts, counts.Evicted,
                core.IsStalled)
            {
                Requests = requests,
                Accounts = state.Accounts,
                Followers = followers,
                Sequences = state.Sequences.Count,
            };
            Volatile.Write(ref _metrics, metrics);
        }
    }

    /// <summary>How far the followers lag; the former list when nothing has changed.</summary>
    private IReadOnlyList<FollowerLag> LagsOf(RaftCore core, IReadOnlyList<FollowerLag> former)
    {
        if (core.Role != RaftRole.Leader)
        {
            return [];
        }

        _lags.Clear();
        bool isSame = true;
        for (int i = 0; i < options.Voters.Count; i++)
        {
            NodeId voter = options.Voters[i];
            if (voter != options.Self)
            {
                LogIndex match = core.MatchIndex(voter);
                long entries = match < core.CommitIndex ? (long)(core.CommitIndex.Value - match.Value) : 0;
                isSame &= _lags.Count < former.Count && former[_lags.Count] == new FollowerLag(voter, entries);
                _lags.Add(new FollowerLag(voter, entries));
            }
        }

        return isSame && _lags.Count == former.Count ? former : [.. _lags];
    }
}
