using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// A leader's duties: replication, heartbeats, check-quorum, read rounds and leadership transfer. Idle while this node
/// does not lead. Owned by one core; not thread-safe.
/// </summary>
internal sealed class Leadership(RaftConfig config, Members members, EntryLog log, RoleState state)
{
    private readonly Replication _replication = new(config, members, log, state);
    private readonly ReadRounds _reads = new();
    private readonly DoubleBuffer<ReadState> _readStates = new();
    private NodeId _transferTarget;
    private NodeId _refusedBy;
    private int _transferTicks;
    private bool _transferSent;
    private int _heartbeatTicks;
    private bool _heartbeatDue;

    /// <summary>Leadership is being transferred: proposals are refused.</summary>
    public bool IsTransferring => !_transferTarget.IsNone;

    /// <summary>The member that leadership is being transferred to, or none.</summary>
    public NodeId TransferTarget => _transferTarget;

    public DoubleBuffer<ReadState> ReadStates => _readStates;

    public DoubleBuffer<LogFetch> Fetches => _replication.Fetches;

    public DoubleBuffer<NodeId> SnapshotsWanted => _replication.SnapshotsWanted;

    public LogIndex HeldByActive => _replication.HeldByActive;

    /// <summary>
    /// An entry of this leader's term is committed, and with it all entries of earlier terms (§5.4.2, thesis 6.4).
    /// </summary>
    private bool OwnTermCommitted => log.TermAt(log.CommitIndex) == state.Term;

    public void Begin()
    {
        _replication.Begin(log.LastIndex);
        _heartbeatTicks = 0;
        _heartbeatDue = false;
        _refusedBy = NodeId.None;
        EndTransfer();
        log.Append(state.Term, EntryKind.Empty, payloadBytes: 0, out _);
    }

    public void End(Outbox outbox)
    {
        _reads.Drop();
        EndTransfer();
        _heartbeatDue = false;
        outbox.DropLeaderMessages();
        _replication.Fetches.RemoveGathered(static _ => true);
        _replication.SnapshotsWanted.RemoveGathered(static _ => true);
    }

    /// <summary>
    /// Counts one tick. False when no majority answered within an election timeout: this leader must step down (thesis
    /// 6.2).
    /// </summary>
    public bool Tick()
    {
        _replication.Tick();
        if (!_replication.HasActiveQuorum())
        {
            return false;
        }

        if (++_heartbeatTicks >= config.HeartbeatTicks)
        {
            _heartbeatTicks = 0;
            _heartbeatDue = true;
            _transferSent = false;
        }

        if (IsTransferring && ++_transferTicks >= config.ElectionTicks)
        {
            _refusedBy = _transferTarget;
            EndTransfer();
        }

        return true;
    }

    public void OwnLogPersisted() => _replication.CommitWhatMajorityHolds();

    public void AppendAnswered(in RaftMessage reply)
    {
        if (_replication.Find(reply.From) is { } follower)
        {
            follower.Heard();
            _replication.Answered(follower, reply);
        }
    }

    public void HeartbeatAnswered(in RaftMessage reply)
    {
        if (_replication.Find(reply.From) is not { } follower)
        {
            return;
        }

        follower.Heard();
        follower.ReportDisk(reply.Stalled);
        if (reply.Uncounted)
        {
            follower.StopCounting();
        }

        if (reply.Hint <= log.LastIndex && reply.Index <= log.LastIndex)
        {
            follower.HeartbeatAnswered(reply.Hint, reply.Index, counted: !reply.Uncounted);
        }

        if (follower.Counts && reply.Round <= _reads.Newest && reply.Round > follower.ConfirmedRound)
        {
            follower.RoundConfirmed(reply.Round);
            ConfirmReads();
        }
    }

    public ulong Read() => _reads.Register();

    /// <summary>
    /// Leadership may go to this member: it votes, its answers count, it replicates entries, its disk works, and it has
    /// not paused lately.
    /// </summary>
    public bool CanTransfer(NodeId target) =>
        target != members.Self
        && _replication.Find(target)
            is { Votes: true, Counts: true, AwaitsSnapshot: false, IsStalled: false, IsRested: true };

    /// <summary>This member has not reported a stalled disk for a long while.</summary>
    public bool IsSteady(NodeId member) => member == members.Self || _replication.Find(member) is { IsSteady: true };

    /// <summary>
    /// The best member to lead in this node's place: of the active members that may take leadership, the one with the
    /// longest matching log. Avoids the last member that did not take leadership, if there is another.
    /// </summary>
    public NodeId Successor()
    {
        Progress? best = null;
        foreach (Progress other in _replication.Others)
        {
            if (other.IsActive && CanTransfer(other.Member)
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
    public bool TryTransfer(NodeId target)
    {
        if (!CanTransfer(target))
        {
            return false;
        }

        if (_transferTarget != target)
        {
            EndTransfer();
            _transferTarget = target;
        }

        return true;
    }

    public void Unreachable(NodeId follower) => _replication.Find(follower)?.Unreachable();

    /// <summary>See <see cref="RaftCore.SnapshotEnded"/>.</summary>
    public void SnapshotEnded(NodeId follower, LogIndex index, bool installed) =>
        _replication.Find(follower)?.SnapshotEnded(index < log.LastIndex ? index : log.LastIndex, installed);

    public bool AwaitsSnapshot(NodeId member) => _replication.Find(member) is { AwaitsSnapshot: true };

    /// <summary>The member has lost its log: its earlier acknowledgements are void.</summary>
    public void Forget(NodeId member)
    {
        _replication.Find(member)?.Forget(log.LastIndex);
        _replication.SnapshotsWanted.RemoveGathered(wanted => wanted == member);
    }

    public bool CompleteFetch(NodeId follower, LogIndex first, ReadOnlySpan<byte> entries, out RaftMessage append)
    {
        append = default;
        return _replication.Find(follower) is { } progress
            && _replication.CompleteFetch(progress, first, entries, out append);
    }

    public LogIndex MatchIndex(NodeId member) =>
        member == members.Self ? log.DurableIndex : _replication.Find(member)?.Match ?? default;

    public bool IsActive(NodeId member) => member == members.Self || _replication.Find(member) is { IsActive: true };

    /// <summary>Queues the messages that are due. A second call adds nothing.</summary>
    public void Prepare(Outbox outbox)
    {
        bool roundOpened = false;
        if (_reads.CanOpen && OwnTermCommitted)
        {
            _reads.Open(log.CommitIndex);
            ConfirmReads();
            roundOpened = _reads.AnyInFlight;
        }

        // An in-order heartbeat names what was sent before it, so it precedes the appends of the same Ready.
        foreach (Progress follower in _replication.Others)
        {
            if (_heartbeatDue || (roundOpened && follower.Votes))
            {
                SendHeartbeat(follower, follower.Match, isInOrder: false, outbox);
            }

            if (_heartbeatDue && follower.Next.Previous() > follower.Match)
            {
                SendHeartbeat(follower, follower.Next.Previous(), isInOrder: true, outbox);
            }
        }

        _heartbeatDue = false;
        _replication.Send(outbox);
        if (IsTransferring && AwaitsSnapshot(_transferTarget))
        {
            // The target will not catch up soon, so proposals must not wait for it.
            EndTransfer();
        }

        if (IsTransferring && !_transferSent && _replication.Find(_transferTarget)?.Match == log.LastIndex)
        {
            outbox.SendNow(new RaftMessage { Kind = RaftMessageKind.TimeoutNow, To = _transferTarget });
            _transferSent = true;
        }
    }

    private void SendHeartbeat(Progress follower, LogIndex sent, bool isInOrder, Outbox outbox)
    {
        // A follower adopts this commit index without checking that its log matches, so it never exceeds what the
        // follower acknowledged.
        LogIndex commit = follower.Match < log.CommitIndex ? follower.Match : log.CommitIndex;
        outbox.SendNow(new RaftMessage
        {
            Kind = RaftMessageKind.Heartbeat,
            To = follower.Member,
            Index = sent,
            InOrder = isInOrder,
            Commit = commit,
            Hint = log.CommitIndex,
            Round = _reads.Newest,
        });
    }

    private void ConfirmReads()
    {
        if (_reads.TryConfirm(_replication.RoundOfMajority(_reads.Newest), out ReadState confirmed))
        {
            _readStates.Add(confirmed);
        }
    }

    private void EndTransfer()
    {
        _transferTarget = NodeId.None;
        _transferTicks = 0;
        _transferSent = false;
    }
}
