using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// What others may know of a group: its status goes to a port when it changes, the rest may be read at any time.
/// Written by the group's loop; read by any thread.
/// </summary>
internal sealed class GroupReport(int slot, LoopOptions options, ILeadershipSink leadership)
{
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
            leadership.LeadershipChanged(slot, status);
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
    public void Tick(RaftCore core, AppliedState applied, LogIndex stored)
    {
        PartitionMetrics metrics = _metrics;
        if (metrics.Applied != applied.Index || metrics.Stored != stored || metrics.LogStart != core.LogStart
            || metrics.MayVote != core.IsVoting || metrics.IsStalled != core.IsStalled)
        {
            StateMachine state = applied.State;
            StateCounts counts = state.Counts;
            metrics = new PartitionMetrics(applied.Index, state.Digest, counts.Keys, stored, core.LogStart,
                core.IsVoting,
                state.Sessions.Metrics, state.Locks.Metrics, counts.Evicted, core.IsStalled);
            Volatile.Write(ref _metrics, metrics);
        }
    }
}
