using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;
using Kahuna.Wire;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// What clients want of a partition, from its arrival to the answer: writes that wait to be proposed and then for their
/// entry, reads that wait for their round. Everybody gets one answer, also when leadership is lost. Owned by one group;
/// not thread-safe.
/// </summary>
internal sealed class PendingRequests
{
    private readonly LoopOptions _options;
    private readonly bool _isEphemeral;
    private readonly TurnClock _turn;
    private readonly LogWatch _logWatch;
    private readonly ReplyFrames _replies;
    private readonly AppliedState _applied;
    private readonly WriteRules _rules;
    private readonly ProposalQueue _proposals;
    private readonly ParkedReads _parked;
    private readonly PendingReads _reads;
    private readonly LockWaiters _locks;
    private readonly Housekeeping _housekeeping;
    private readonly PauseGuard _pause;
    private ClusterClock _clock;
    private long _deposedMs;
    private ulong _openTicket;
    private bool _hasOpenTicket;

    public PendingRequests(RequestParts parts, Func<long, bool>? mayLease)
    {
        _options = parts.Options;
        _isEphemeral = parts.Group.IsEphemeral;
        _turn = parts.Clock;
        _logWatch = parts.LogWatch;
        _replies = parts.Replies;
        _applied = parts.Applied;
        _rules = new WriteRules(parts, mayLease);
        _proposals = new ProposalQueue(_options.EntryBytesMax, _replies);
        _parked = new ParkedReads(_replies);
        _locks = new LockWaiters(_options, _turn, _replies, _applied, _parked);
        _reads = new PendingReads(_replies, _applied, _locks, _parked);
        _housekeeping = new Housekeeping(parts.Group, _options, _applied, parts.Memory, _proposals, _locks);
        _pause = new PauseGuard(_turn);
        Commands = new AppliedCommands(parts, _proposals, _housekeeping);
    }

    /// <summary>Applies the commands of committed entries.</summary>
    public AppliedCommands Commands { get; }

    /// <summary>This node leads and has applied an entry of its own term.</summary>
    public bool IsServing { get; private set; }

    /// <summary>The node stops, and takes nothing new.</summary>
    public bool IsDraining { get; set; }

    /// <summary>Reads that wait until their clients take the answers they have. For tests while no turn runs.</summary>
    public int Parked => _parked.Count;

    public bool HasQueued => _proposals.Queued > 0;

    public bool IsIdle => _proposals.Queued == 0 && _proposals.Proposed == 0 && _reads.Count == 0;

    /// <summary>Proposals wait, and may go, or answers that were left to the next turn.</summary>
    public bool IsDue(RaftCore core) => (_proposals.Queued > 0 && CanPropose(core)) || (IsServing && _locks.IsDue);

    /// <summary>Cluster time, while this node serves.</summary>
    public long ClusterMs => _clock.At(_turn.NowMs);

    /// <summary>A start has replayed commands.</summary>
    public void Replayed(int commands) => _housekeeping.Replayed(commands);

    /// <summary>An epoch of an ephemeral group begins.</summary>
    public void BeginEpoch(ulong epoch) => _rules.Epoch = epoch;

    /// <summary>One checked operation of a client. A read keeps the batch held until it is answered.</summary>
    public void Accept(RaftCore core, ClientBatch batch, int operation, bool hasFailed)
    {
        ref readonly ClientOperation op = ref batch.Operations[operation];
        if (hasFailed)
        {
            _replies.ReplyError(batch.Sink, op.Number, OutcomeStatus.Internal,
                "The partition has stopped on an internal error; see the node's log.");
        }
        else if (IsDraining)
        {
            _replies.ReplyError(batch.Sink, op.Number, OutcomeStatus.Unavailable, "The node is stopping.");
        }
        else if (_turn.IsAfterPause && Command.IsOpening(batch.Command(op)) && _pause.RefusesOpening(core, IsServing))
        {
            _replies.ReplyError(batch.Sink, op.Number, OutcomeStatus.Unavailable,
                "The node stood still, and the command may be older than it looks; send it again.");
        }
        else if (core.Role != RaftRole.Leader)
        {
            _replies.Reply(batch.Sink, op.Number, new Outcome(OutcomeStatus.NotLeader, number: core.Leader.Value));
        }
        else if (_turn.NowMs - batch.ArrivalMs > (op.WaitMs is 0 or > Limits.CommandWaitMsMax ? Limits.CommandWaitMsMax
            : op.WaitMs))
        {
            _replies.ReplyError(batch.Sink, op.Number, OutcomeStatus.Expired,
                "The time limit passed before the operation was begun.");
        }
        else if (op.IsRead)
        {
            AcceptRead(core, batch, operation);
        }
        else
        {
            AcceptWrite(batch, op);
        }
    }

    /// <summary>A write of the node itself, which nobody waits for.</summary>
    public void Add(ReadOnlySpan<byte> command) => _proposals.Add(command);

    /// <summary>A turn begins: reads that come now need a round that begins after it.</summary>
    public void BeginTurn() => _hasOpenTicket = false;

    /// <summary>Proposes what waits, as far as it may.</summary>
    public void Propose(RaftCore core)
    {
        if (!CanPropose(core))
        {
            return;
        }

        bool evicts = !IsDraining && _housekeeping.TryEvict(core);
        long timeMs = _clock.At(_turn.NowMs);
        while (_proposals.TryPeek(out int payloadBytes))
        {
            if (!core.TryPropose(EntryKind.Commands, payloadBytes, out LogIndex index, out Span<byte> payload))
            {
                // Leadership is being handed over; the hint names the next leader. A sweep that waited is gone,
                // too.
                _proposals.DropQueued(OutcomeStatus.NotLeader, core.LeaderToAsk.Value);
                _housekeeping.Drop();
                return;
            }

            _proposals.MarkProposed(index, core.Term, timeMs, payload);
            if (evicts)
            {
                _housekeeping.EvictedWith(index);
            }
        }
    }

    /// <summary>A tick: answers what was held back long enough, and proposes what is due.</summary>
    public void Tick()
    {
        _locks.Tick(_clock.At(_turn.NowMs));
        _parked.WakeAll();
        _housekeeping.Tick(_turn.NowMs, _turn.ResumedMs, _clock.At(_turn.NowMs), IsDraining);
    }

    /// <summary>
    /// A tick, on leaders and on followers: gives back room that is no longer needed since the load fell.
    /// </summary>
    public void TickBuffers() => _proposals.Tick();

    /// <summary>Answers of a client have left, for which reads may wait here.</summary>
    public void Left(ReplySink sink) => _parked.Wake(sink);

    /// <summary>
    /// An entry is committed: how many of its commands are awaited. What it takes the place of is answered.
    /// </summary>
    public int Committed(RaftCore core, LogIndex index, Term term)
    {
        _proposals.DropReplaced(index, term, core.LeaderToAsk);
        return _proposals.TryTake(index, out int replies) ? replies : 0;
    }

    /// <summary>An entry of this node's own leadership is applied: everything of earlier ones is, too.</summary>
    public void BeginServing()
    {
        IsServing = true;
        _clock.Anchor(_applied.TimeMs, _turn.NowMs);
        _housekeeping.BeginServing(_turn.NowMs);
        _pause.BeginServing();
    }

    /// <summary>A round has confirmed reads.</summary>
    public void Confirm(in ReadState state)
    {
        _reads.Confirm(state);
        _pause.Confirm(state.Ticket);
    }

    /// <summary>
    /// Answers the reads whose round is confirmed and applied, as far as a turn's slice and the clients' room reach.
    /// True: more can be answered in the next turn.
    /// </summary>
    public bool ServeReads()
    {
        long nowMs = _clock.At(_turn.NowMs);
        _locks.ServeChanges(nowMs);
        if (IsServing && !IsDraining)
        {
            _housekeeping.GrantOn(nowMs);
        }

        return _reads.Serve(nowMs);
    }

    /// <summary>
    /// This node leads no more, or again: what is not proposed, and reads, did not happen. The end of what is proposed
    /// is not known here: numbered writes are answered so at once, because their callers repeat them at the next leader
    /// and get the first outcome. A write without a number cannot be repeated: it waits for its entry, or for what
    /// takes its place, for two election timeouts. Called in each turn in which the node does not lead.
    /// </summary>
    public void LoseLeadership(RaftCore core)
    {
        _deposedMs = IsServing ? _turn.NowMs : _deposedMs;
        IsServing = false;
        ReleaseProposed();
        _pause.LoseLeadership();
        _housekeeping.Drop();
        _locks.Drop(OutcomeStatus.NotLeader, core.Leader.Value);
        if (_proposals.Queued > 0)
        {
            _proposals.DropQueued(OutcomeStatus.NotLeader, core.LeaderToAsk.Value);
        }

        _reads.Drop(OutcomeStatus.NotLeader, core.LeaderToAsk.Value);
    }

    /// <summary>The log is replaced, or void: the end of what was proposed is not known any more.</summary>
    public void LoseProposed() => _proposals.DropProposed(OutcomeStatus.Unknown);

    /// <summary>
    /// Answers everything that still waits: what was proposed with "unknown", the rest with "did not happen".
    /// </summary>
    public void Close()
    {
        LoseProposed();
        _proposals.DropQueued(OutcomeStatus.Unavailable);
        _reads.Drop(OutcomeStatus.Unavailable, 0);
        _locks.Drop(OutcomeStatus.Unavailable, 0);
    }

    /// <summary>A rule is broken: answers everything.</summary>
    public void Fail()
    {
        _proposals.DropProposed(OutcomeStatus.Internal);
        _proposals.DropQueued(OutcomeStatus.Unavailable);
        _reads.Drop(OutcomeStatus.Internal, 0);
        _locks.Drop(OutcomeStatus.Internal, 0);
    }

    /// <summary>For so long the next leader's entries may be on their way.</summary>
    private long DeposedMsMax => 2L * _options.ElectionTicks * _options.TickMs;

    private void ReleaseProposed()
    {
        if (_proposals.Proposed == 0)
        {
            return;
        }

        if (_turn.NowMs - _deposedMs >= DeposedMsMax)
        {
            LoseProposed();
            return;
        }

        _proposals.ReleaseNumbered();
    }

    private bool CanPropose(RaftCore core) =>
        IsServing && core.Role == RaftRole.Leader
            && (_isEphemeral ? HasRoom(core) : _logWatch.Pending < _options.LogBatchesInFlight);

    private bool HasRoom(RaftCore core) =>
        core.LastIndex.Value - core.CommitIndex.Value < (ulong)_options.EphemeralEntriesInFlight;

    private void AcceptRead(RaftCore core, ClientBatch batch, int operation)
    {
        if (!_hasOpenTicket)
        {
            if (!core.TryRead(out _openTicket))
            {
                _replies.Reply(batch.Sink, batch.Operations[operation].Number,
                    new Outcome(OutcomeStatus.NotLeader, number: core.Leader.Value));
                return;
            }

            _hasOpenTicket = true;
        }

        batch.Hold();
        _reads.Add(batch, operation, _openTicket);
    }

    private void AcceptWrite(ClientBatch batch, in ClientOperation op)
    {
        if (_rules.Refuse(batch.Command(op), _proposals.Bytes, out OutcomeStatus status) is { } reason)
        {
            _replies.ReplyError(batch.Sink, op.Number, status, reason);
            return;
        }

        _proposals.Add(batch, op);
    }
}
