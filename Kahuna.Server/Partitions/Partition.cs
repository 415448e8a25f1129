using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Commands;
using Kahuna.Client.Wire.Outcomes;
using Kahuna.Server.Partitions.States;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;

namespace Kahuna.Server.Partitions;

/// <summary>
/// One partition on this node: its Raft group, its state, and who waits for what. It is the owner of hop 5: takes
/// operations and messages in, proposes whole batches, carries out the Ready. Owned by one loop; not thread-safe.
/// </summary>
internal sealed class Partition
{
    /// <summary>Doublings of the pause between attempts to hand leadership to the preferred node.</summary>
    private const int MovesMax = 7;

    private readonly LoopOptions _options;
    private readonly TurnOutput _output;
    private readonly RaftCore _core;
    private readonly StateDesk _states;
    private readonly ProposalQueue _proposals;
    private readonly ReadQueue _reads = new();
    private readonly Action<ProposalQueue.PendingReply> _answerNotLeader;
    private readonly Action<ProposalQueue.PendingReply> _answerUnknown;
    private readonly PartitionTrace? _trace;
    private ClusterClock _clock;
    private ulong _openTicket;
    private bool _hasOpenTicket;
    private bool _serving;
    private bool _sweeping;
    private bool _draining;
    private bool _inHand;
    private Term _term;
    private int _ticks;
    private int _moves;
    private PartitionStatus _published;
    private long _commit;
    private bool _canRejoin;

    public Partition(int number, LoopOptions options, LoopPorts ports, TurnOutput output)
    {
        Number = number;
        Group = new GroupId((uint)number + 1);
        _options = options;
        _output = output;
        _proposals = new ProposalQueue(options.EntryBytesMax);
        PartitionRecovery recovery = new(Group, options, ports);
        _states = new StateDesk(Group, options, ports, recovery.LoadState());
        _core = recovery.RecoverLog((kind, payload) => ApplyPayload(kind, payload, replies: 0));
        _states.Recovered(recovery);
        _commit = (long)_core.CommitIndex.Value;
        _trace = ports.Trace is { } trace ? new PartitionTrace(trace, Group) : null;
        _trace?.StateLoaded(recovery.Applied, recovery.AppliedTerm, _states.State.Digest);
        if (recovery.LogRestarts)
        {
            _output.RestartLog(Group, recovery.Applied, recovery.AppliedTerm);
        }

        _answerNotLeader = reply => Answer(reply, OutcomeStatus.NotLeader, _core.Leader.Value);
        _answerUnknown = reply => Answer(reply, OutcomeStatus.Unknown);
    }

    public int Number { get; }

    public GroupId Group { get; }

    /// <summary>Set once a rule was broken: it takes nothing any more.</summary>
    public bool Failed { get; private set; }

    /// <summary>The loop has it on its list of partitions with work in this turn.</summary>
    public bool Dirty { get; set; }

    public bool IsLeader => _core.Role == RaftRole.Leader;

    public bool HasQueued => _proposals.Queued > 0;

    public bool IsIdle => _proposals.Queued == 0 && _proposals.Proposed == 0 && _reads.Count == 0;

    /// <summary>Nothing waits here, and leadership is with somebody else where there is one.</summary>
    public bool IsDrained => Failed || (IsIdle && (!IsLeader || _options.Voters.Count == 1));

    public PartitionStatus Status => new(_core.Role, _core.Leader, _core.Term, _core.Role == RaftRole.Leader ? _serving : !_core.Leader.IsNone);

    /// <summary>Commit index as of the last turn; any thread.</summary>
    public LogIndex CommitIndex => new((ulong)Volatile.Read(ref _commit));

    /// <summary>Figures as of the last tick; any thread.</summary>
    public PartitionFigures Figures => _states.Figures;

    /// <summary>This node was rebuilt, and knows enough again to vote; any thread.</summary>
    public bool CanRejoin => Volatile.Read(ref _canRejoin);

    /// <summary>For the owner, and for tests while no turn runs.</summary>
    public StateMachine State => _states.State;

    /// <inheritdoc cref="State"/>
    public RaftCore Core => _core;

    /// <summary>Last entry in the state; as <see cref="State"/>.</summary>
    public LogIndex Applied => _states.Applied;

    // ---- In

    /// <summary>One checked operation of a client. A read keeps the batch held until it is answered.</summary>
    public void Accept(ClientBatch batch, int operation)
    {
        ref readonly ClientOperation op = ref batch.Operations[operation];
        if (Failed)
        {
            _output.ReplyError(batch.Sink, op.Number, OutcomeStatus.Internal, "The partition has stopped on an internal error; see the node's log.");
        }
        else if (_draining)
        {
            _output.ReplyError(batch.Sink, op.Number, OutcomeStatus.Unavailable, "The node is stopping.");
        }
        else if (_core.Role != RaftRole.Leader)
        {
            _output.Reply(batch.Sink, op.Number, new Outcome(OutcomeStatus.NotLeader, number: _core.Leader.Value));
        }
        else if (op.WaitMs != 0 && _output.NowMs - batch.ArrivalMs > op.WaitMs)
        {
            _output.ReplyError(batch.Sink, op.Number, OutcomeStatus.Expired, "The time limit passed before the operation was begun.");
        }
        else if (op.IsRead)
        {
            AcceptRead(batch, operation);
        }
        else
        {
            AcceptWrite(batch, op);
        }
    }

    public void Step(in RaftMessage message, ReadOnlySpan<byte> entries)
    {
        // A node that stops does not take leadership back.
        if (!_states.IsStill && !(_draining && message.Kind == RaftMessageKind.TimeoutNow))
        {
            _core.Step(message, entries);
        }
    }

    public void Persisted(LogIndex index, Term term) => _core.Persisted(index, term);

    public void ReportUnreachable(NodeId peer)
    {
        if (_core.Role == RaftRole.Leader)
        {
            _core.ReportUnreachable(peer);
        }
    }

    /// <summary>The member came back without what it had.</summary>
    public void Forget(NodeId member)
    {
        if (_core.Role == RaftRole.Leader)
        {
            _core.ForgetFollower(member);
        }
    }

    /// <summary>It is certain now that this node breaks no promise by voting.</summary>
    public void AllowVoting() => _core.AllowVoting();

    public void Fetched(NodeId follower, LogIndex first, ReadOnlySpan<byte> entries)
    {
        if (_core.CompleteFetch(follower, first, entries, out RaftMessage append))
        {
            _output.Send(Group, append, entries);
        }
    }

    public void Tick()
    {
        if (_states.IsStill)
        {
            return;
        }

        _core.Tick();
        _states.Tick(_core);
        Volatile.Write(ref _canRejoin, _core.CanRejoin && _output.LogBatchesPending == 0);
        if (!_serving || _core.Role != RaftRole.Leader)
        {
            return;
        }

        if (!_sweeping && !_draining && _states.State.HasExpired(_clock.At(_output.NowMs)))
        {
            ProposeSweep();
        }

        if (++_ticks >= _options.PlacementTicks << _moves && !_draining)
        {
            _ticks = 0;
            MoveToPreferred();
        }
    }

    /// <summary>Takes no new operations; hands leadership to the follower that has most of the log.</summary>
    public void Drain()
    {
        _draining = true;
        if (_core.Role != RaftRole.Leader)
        {
            return;
        }

        NodeId best = NodeId.None;
        foreach (NodeId voter in _options.Voters)
        {
            if (voter != _options.Self && _core.IsActive(voter) && (best.IsNone || _core.MatchIndex(voter) > _core.MatchIndex(best)))
            {
                best = voter;
            }
        }

        if (!best.IsNone)
        {
            _core.TryTransfer(best);
        }
    }

    /// <summary>Answers everything that still waits: what was proposed with "unknown", the rest with "did not happen".</summary>
    public void Close()
    {
        _proposals.DropProposed(_answerUnknown);
        _proposals.DropQueued(reply => Answer(reply, OutcomeStatus.Unavailable));
        DropReads(OutcomeStatus.Unavailable);
    }

    /// <summary>A rule is broken: keeps the evidence, answers, and takes nothing any more.</summary>
    public void Fail()
    {
        Failed = true;
        _proposals.DropProposed(reply => Answer(reply, OutcomeStatus.Internal));
        _proposals.DropQueued(reply => Answer(reply, OutcomeStatus.Unavailable));
        DropReads(OutcomeStatus.Internal);
    }

    // ---- The stored state

    /// <summary>What the state thread asks for or tells.</summary>
    public void Take(StateCall call)
    {
        switch (call)
        {
            case BeginView begin:
                // Only what is on the own disk: the stored state is never ahead of the own log.
                _states.BeginView(mayBegin: !Failed && _states.Applied <= _core.DurableIndex, begin.Whole);
                break;
            case TakeRecords take:
                _states.Take(take.Slice, take.BytesMax);
                break;
            case StateStored stored:
                _states.StoredThrough(stored.Index);
                break;
            case StateNotStored:
                _states.NotStored();
                break;
            case SnapshotSent sent:
                _states.Sent(sent.Follower);
                _core.SnapshotEnded(sent.Follower, sent.Index, sent.Installed);
                break;
            case PrepareInstall prepare:
                _states.AnswerInstall(Failed ? InstallAnswer.Superseded : Prepare(prepare.Mark));
                break;
            case DropState:
                _states.Drop();
                break;
            case Install { State: { } state, Mark: var mark }:
                _proposals.DropProposed(_answerUnknown);
                InvariantException.Require(_core.InstallSnapshot(mark.Index, mark.Term), "a prepared state is installed");
                _output.RestartLog(Group, mark.Index, mark.Term);
                _states.Install(state, mark);
                _trace?.StateLoaded(mark.Index, mark.Term, state.Digest);
                Volatile.Write(ref _commit, (long)_core.CommitIndex.Value);
                break;
            case Install:
                _states.GoOn();
                break;
        }
    }

    /// <summary>Whether a state that has arrived is of use now.</summary>
    private InstallAnswer Prepare(in StateMark mark)
    {
        if (!_core.CanInstall(mark.Index, mark.Term))
        {
            return InstallAnswer.Superseded;
        }

        // The term in which the state was made must be on the own disk before the state is.
        return _core.Term < mark.Term || _core.HasReady || _output.LogBatchesPending > 0 ? InstallAnswer.NotNow : InstallAnswer.Ready;
    }

    // ---- The turn

    /// <summary>First half: propose what waits, hand entries to the log and messages to the peers.</summary>
    public void Propose()
    {
        _hasOpenTicket = false;
        _inHand = false;
        if (_states.IsStill)
        {
            return;
        }

        _trace?.LookAtRole(_core);
        if (_core.Role != RaftRole.Leader || _core.Term != _term)
        {
            LoseLeadership();
            _term = _core.Term;
        }

        if (_proposals.Queued > 0)
        {
            ProposeQueued();
        }

        if (!_core.HasReady)
        {
            return;
        }

        _inHand = true;
        (LogIndex first, LogIndex last) = _core.Unpersisted;
        if (first <= last)
        {
            _core.Payload(last, out Term term, out _);
            _output.Persist(Group, _core, first, last);
            _output.NotifyPersisted(this, last, term);
        }

        if (_core.HardStateChanged)
        {
            _output.Persist(Group, _core.HardState);
        }

        foreach (ref readonly OutgoingMessage outgoing in _core.Messages)
        {
            if (outgoing.AfterDurable)
            {
                _output.SendAfterDurable(this, outgoing.Message);
            }
            else if (outgoing.Message.To != _options.Self)
            {
                _output.Send(Group, outgoing.Message, _core);
            }
        }

        foreach (ref readonly LogFetch fetch in _core.Fetches)
        {
            _output.Fetch(Group, fetch);
        }

        foreach (NodeId follower in _core.SnapshotsWanted)
        {
            _states.Send(follower, _core.Term);
        }
    }

    /// <summary>Second half, after the log and the peers have theirs: apply what is committed, serve what is confirmed. True when another round is due at once.</summary>
    public bool Finish()
    {
        if (_states.IsStill)
        {
            return false;
        }

        if (_inHand)
        {
            _trace?.LookAtCommit(_core);
            (LogIndex first, LogIndex last) = _core.Committed;
            for (LogIndex index = first; index <= last; index = index.Next())
            {
                ReadOnlySpan<byte> payload = _core.Payload(index, out Term term, out EntryKind kind);
                ApplyEntry(index, term, kind, payload);
            }

            _trace?.EndApply();

            foreach (ref readonly ReadState state in _core.ReadStates)
            {
                _reads.Confirm(state);
            }

            _core.Advance();
            Volatile.Write(ref _commit, (long)_core.CommitIndex.Value);
        }

        ServeReads();
        Publish();
        return _core.HasReady || (_proposals.Queued > 0 && CanPropose);
    }

    private bool CanPropose => _serving && _core.Role == RaftRole.Leader && _output.LogBatchesPending < _options.LogBatchesInFlight;

    private void AcceptRead(ClientBatch batch, int operation)
    {
        if (!_hasOpenTicket)
        {
            if (!_core.TryRead(out _openTicket))
            {
                _output.Reply(batch.Sink, batch.Operations[operation].Number, new Outcome(OutcomeStatus.NotLeader, number: _core.Leader.Value));
                return;
            }

            _hasOpenTicket = true;
        }

        batch.Hold();
        _reads.Add(batch, operation, _openTicket);
    }

    private void AcceptWrite(ClientBatch batch, in ClientOperation op)
    {
        if (_proposals.Bytes > _options.UncommittedBytesMax)
        {
            _output.ReplyError(batch.Sink, op.Number, OutcomeStatus.Busy, "The partition has more uncommitted writes than it may; try again later.");
        }
        else if (_output.RefuseWrites is { } reason)
        {
            _output.ReplyError(batch.Sink, op.Number, OutcomeStatus.LogFull, reason);
        }
        else
        {
            _proposals.Add(batch.Command(op), batch.Sink, op.Number);
        }
    }

    private void ProposeQueued()
    {
        if (!CanPropose)
        {
            return;
        }

        long timeMs = _clock.At(_output.NowMs);
        while (_proposals.TryPeek(timeMs, out ReadOnlySpan<byte> payload))
        {
            if (!_core.TryPropose(EntryKind.Commands, payload, out LogIndex index))
            {
                // Leadership is being handed over; whoever leads next is told by the hint. A sweep that waited is gone, too.
                _proposals.DropQueued(_answerNotLeader);
                _sweeping = false;
                return;
            }

            _proposals.MarkProposed(index, _core.Term);
        }
    }

    private void ProposeSweep()
    {
        Command sweep = new()
        {
            Kind = CommandKind.ExpireSweep,
            Durability = CommandDurability.Persistent,
            Flags = CommandFlags.Number,
            Number = _options.SweepKeysMax,
        };
        ByteBuffer scratch = ByteBuffer.Rent(64);
        sweep.Write(scratch);
        _proposals.Add(scratch.Written, null, 0);
        scratch.Return();
        _sweeping = true;
    }

    private void MoveToPreferred()
    {
        NodeId preferred = _options.PreferredLeader(Number);
        if (preferred != _options.Self && _core.IsActive(preferred) && _core.MatchIndex(preferred).Value + 64 >= _core.LastIndex.Value)
        {
            // Writes wait while it lasts: a node that does not take leadership is asked less and less often.
            _moves = Math.Min(_moves + (_core.TryTransfer(preferred) ? 1 : 0), MovesMax);
        }
    }

    private void ApplyEntry(LogIndex index, Term term, EntryKind kind, ReadOnlySpan<byte> payload)
    {
        InvariantException.Require(index == _states.Applied.Next(), "entries are applied once and in order");
        _proposals.DropReplaced(index, term, _answerNotLeader);
        if (_proposals.TryTake(index, out int replies))
        {
            _trace?.Acknowledged(index, term, replies);
        }

        ApplyPayload(kind, payload, replies);
        _states.MarkApplied(index, term);
        _trace?.Applied(index, _states.State.Digest);
        if (!_serving && _core.Role == RaftRole.Leader && term == _core.Term)
        {
            _serving = true;
            _clock.Anchor(_states.State.TimeMs, _output.NowMs);
        }
    }

    /// <summary>The one way from an entry to the state: leader, follower and restart all go through it.</summary>
    private void ApplyPayload(EntryKind kind, ReadOnlySpan<byte> payload, int replies)
    {
        if (kind != EntryKind.Commands)
        {
            return;
        }

        bool decodes = CommandEntry.TryReadHeader(payload, out long timeMs, out int count, out ReadOnlySpan<byte> items);
        InvariantException.Require(decodes, "a committed entry decodes");
        InvariantException.Require(replies == 0 || replies == count, "every command of an awaited entry has one reply");
        _states.State.BeginEntry(timeMs);
        for (int i = 0; i < count; i++)
        {
            if (i % Prefetcher.CommandsMax == 0)
            {
                CommandsAhead.OfEntry(_states.State.Ahead, items, count - i);
            }

            decodes = CommandEntry.TryReadItem(ref items, out ReadOnlySpan<byte> bytes);
            decodes &= Command.TryRead(bytes, out Command command);
            InvariantException.Require(decodes, "a committed command decodes");
            ApplyCommand(command, replies > 0 ? _proposals.TakeReply() : default);
        }
    }

    private void ApplyCommand(scoped in Command command, ProposalQueue.PendingReply reply)
    {
        if (command.Kind == CommandKind.ExpireSweep)
        {
            _sweeping = false;
        }

        if (reply.Sink is null)
        {
            _states.State.Apply(command, null);
            return;
        }

        ByteBuffer frame = _output.BeginReply(reply.Sink, reply.Number, out int at);
        _states.State.Apply(command, frame);
        _output.EndReply(reply.Sink, frame, at);
    }

    private void ServeReads()
    {
        long nowMs = _clock.At(_output.NowMs);
        for (int i = 0; _reads.TryTake(_states.Applied, out ReadQueue.PendingRead read); i++)
        {
            if (i % Prefetcher.CommandsMax == 0)
            {
                CommandsAhead.OfReads(_states.State.Ahead, _reads);
            }

            ref readonly ClientOperation op = ref read.Batch.Operations[read.Operation];
            bool decodes = Command.TryRead(read.Batch.Command(op), out Command command);
            InvariantException.Require(decodes, "a read that passed the door decodes");
            ByteBuffer frame = _output.BeginReply(read.Batch.Sink, op.Number, out int at);
            _states.State.Read(command, nowMs, frame);
            _output.EndReply(read.Batch.Sink, frame, at);
            read.Batch.Release();
        }
    }

    private void LoseLeadership()
    {
        _ticks = 0;
        _moves = 0;
        _serving = false;
        _sweeping = false;
        _states.SendNothing();
        if (_proposals.Queued > 0)
        {
            _proposals.DropQueued(_answerNotLeader);
        }

        if (_reads.Count > 0)
        {
            DropReads(OutcomeStatus.NotLeader);
        }
    }

    private void DropReads(OutcomeStatus status)
    {
        while (_reads.TryDrop(out ReadQueue.PendingRead read))
        {
            _output.Reply(read.Batch.Sink, read.Batch.Operations[read.Operation].Number, new Outcome(status, number: status == OutcomeStatus.NotLeader ? _core.Leader.Value : 0));
            read.Batch.Release();
        }
    }

    private void Answer(ProposalQueue.PendingReply reply, OutcomeStatus status, long number = 0)
    {
        if (reply.Sink is not null)
        {
            _output.Reply(reply.Sink, reply.Number, new Outcome(status, number: number));
        }
    }

    private void Publish()
    {
        PartitionStatus status = Status;
        if (status != _published)
        {
            _published = status;
            _output.Leadership.LeadershipChanged(Number, status);
        }
    }
}
