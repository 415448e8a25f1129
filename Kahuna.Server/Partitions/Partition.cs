using Kahuna.Client.Wire.Commands;
using Kahuna.Server.Partitions.Ephemeral;
using Kahuna.Server.Partitions.States;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;
using Kahuna.Server.State.Meta;

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
    private readonly LoopPorts _ports;
    private readonly EphemeralLife? _life;
    private readonly MetaDesk? _meta;
    private readonly StateDesk _states;
    private readonly ClientDesk _clients;
    private readonly StateAudit _audit;
    private readonly PartitionTrace? _trace;
    private readonly int _partition;
    private readonly CatchUp _catchUp;
    private readonly LogIndex _recovered;
    private RaftCore _core;
    private bool _inHand;
    private Term _term;
    private int _ticks;
    private int _moves;
    private PartitionStatus _published;
    private long _commit;
    private bool _canRejoin;
    private int _savesPending;
    private ulong _promisesBatch;
    private LogIndex _handedOut;
    private Term _handedOutTerm;

    public Partition(int slot, LoopOptions options, LoopPorts ports, TurnOutput output, MetaBoard board)
    {
        Number = slot;
        GroupLayout layout = ports.Layout(options);
        Group = layout.GroupOf(slot);
        _partition = layout.PartitionOf(slot);
        _options = options;
        _catchUp = new CatchUp(options.CaughtUpTicks, options.LagTicks);
        _ports = ports;
        _output = output;
        PartitionRecovery recovery = new(Group, options, ports);
        _states = new StateDesk(Group, options, ports, Load(recovery));
        _clients = new ClientDesk(Group, options, output, _states, ports.Memory);
        _audit = new StateAudit(Group, options, ports.Report);
        if (Group.IsEphemeral)
        {
            HardState found = ports.Log.Recovered(Group).HardState;
            _life = new EphemeralLife(Group, options, EphemeralLife.JoinedIn(found), board.Ask);
            _core = recovery.EmptyCore(found, VotingRight.Full);
        }
        else
        {
            _core = Recover(recovery);
        }

        _recovered = _core.LastIndex;
        _clients.Core = _core;
        _clients.Epoch = _life?.Epoch ?? 0;
        _clients.MayLease = _life is null ? null : _life.MayLease;
        if (LoadError is not null)
        {
            return;
        }

        if (Group.IsMeta)
        {
            _meta = new MetaDesk(options, ports, board);
            SaveStart(_meta.NextStart());
            _meta.Publish(_states.State);
        }

        _commit = (long)_core.CommitIndex.Value;
        _trace = ports.Trace is { } trace && !Group.IsEphemeral && !Group.IsMeta ? new PartitionTrace(trace, Group) : null;
        _trace?.StateLoaded(recovery.Applied, recovery.AppliedTerm, _states.State.Digest);
    }

    public int Number { get; }

    public GroupId Group { get; }

    /// <summary>Set once a rule was broken: it takes nothing any more.</summary>
    public bool Failed { get; private set; }

    /// <summary>The rule that was broken when it was loaded, or what of its stored data cannot be used: the owner stops it, and the others go on.</summary>
    public Exception? LoadError { get; private set; }

    /// <summary>The loop has it on its list of partitions with work in this turn.</summary>
    public bool Dirty { get; set; }

    public bool IsLeader => !Failed && _core.Role == RaftRole.Leader;

    public bool HasQueued => _clients.HasQueued;

    /// <summary>What its messages carry besides.</summary>
    public MessageStamp Stamp => _life?.Stamp ?? default;

    /// <summary>A promise that was made with this stamp may leave: neither was its epoch closed since, nor has the node pledged to keep out of it.</summary>
    public bool MayPromise(in MessageStamp stamp) => _life is null || (stamp == _life.Stamp && _life.IsTakingPart);

    /// <summary>Nothing waits here, and leadership is with somebody else where there is one.</summary>
    public bool IsDrained => Failed || (_clients.IsIdle && (!IsLeader || _options.Voters.Count == 1));

    public PartitionStatus Status => Failed ? new(RaftRole.Follower, NodeId.None, _core.Term, Serving: false, _life?.Epoch ?? 0) : new(_core.Role, _core.Leader, _core.Term, _core.Role == RaftRole.Leader ? _clients.IsServing : !_core.Leader.IsNone && (_life is null || (_life.IsTakingPart && _core.IsVoting)), _life?.Epoch ?? 0, Lags: !IsLeader && !_catchUp.IsCaughtUp);

    /// <summary>Nothing goes in or out: a state is being put in place, or the node does not take part in the epoch.</summary>
    public bool IsStill => _states.IsStill || _life is { IsTakingPart: false };

    /// <summary>
    /// Term and vote as last handed to storage are there. A batch is waited for by its number: under load there may never be a moment in which none is
    /// under way.
    /// </summary>
    private bool ArePromisesDurable => _life is null ? _output.PersistedThrough >= _promisesBatch : _savesPending == 0;

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

    /// <inheritdoc cref="State"/>
    public ClientDesk Clients => _clients;

    /// <summary>Last entry in the state; as <see cref="State"/>.</summary>
    public LogIndex Applied => _states.Applied;

    private StateMachine Load(PartitionRecovery recovery)
    {
        try
        {
            return recovery.LoadState();
        }
        catch (Exception error) when (error is InvariantException or GroupDamagedException)
        {
            LoadError = error;
            return new StateMachine(_options.StateLimits);
        }
    }

    /// <summary>The core with what the log has; one with nothing, which is never asked, where that cannot be carried out.</summary>
    private RaftCore Recover(PartitionRecovery recovery)
    {
        if (LoadError is null)
        {
            try
            {
                RaftCore core = recovery.RecoverLog((kind, payload) => ApplyPayload(recovery.Applied.Next(), kind, payload, replies: 0));
                if (recovery.LogRestarts)
                {
                    RestartLog(recovery.Applied, recovery.AppliedTerm);
                }

                _states.Recovered(recovery);
                return core;
            }
            catch (Exception error) when (error is InvariantException or GroupDamagedException)
            {
                LoadError = error;
                _states.Drop();
            }
        }

        return recovery.EmptyCore(_ports.Log.Recovered(Group).HardState, VotingRight.Full);
    }

    // ---- In

    /// <summary>One checked operation of a client. A read keeps the batch held until it is answered.</summary>
    public void Accept(ClientBatch batch, int operation) => _clients.Accept(batch, operation, Failed);

    public void Step(in RaftMessage message, in MessageStamp stamp, ReadOnlySpan<byte> entries)
    {
        if (message.Kind == RaftMessageKind.Forward)
        {
            Record(entries);
            return;
        }

        if (_life is not null)
        {
            if (!_life.MayTake(message, stamp, _core.Term, out bool returned))
            {
                return;
            }

            if (returned)
            {
                Forget(message.From);
            }
        }

        if (message.Kind == RaftMessageKind.Digest)
        {
            Compare(message.From, message.Index, message.Round);
            return;
        }

        // A node that stops does not take leadership back, nor does one that stood still: for a while it refuses what begins a session.
        bool takesLeadership = !_clients.IsDraining && !_output.IsLate;
        if (!IsStill && (takesLeadership || message.Kind != RaftMessageKind.TimeoutNow))
        {
            _core.Step(message, entries);
        }
    }

    /// <summary>Answers of a client have left, for which reads may wait here.</summary>
    public void Left(ReplySink sink) => _clients.Left(sink);

    public void Persisted(LogIndex index, Term term)
    {
        _core.Persisted(index, term);
        _states.LogPersisted(index, term, _core.DurableIndex);
    }

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
    public void AllowVoting()
    {
        _life?.AllowVoting();
        if (_life is null || _life.Epoch > 0)
        {
            _core.AllowVoting();
        }
    }

    /// <summary>What it had stored besides entries is on stable storage.</summary>
    public void Saved()
    {
        _savesPending--;
        if (_savesPending == 0)
        {
            _meta?.Stored();
        }
    }

    /// <summary>The meta group's records have changed.</summary>
    public void Learn(MetaView view)
    {
        if (_life is not null && _life.Learn(view, out VotingRight voting))
        {
            BeginEpoch(voting);
        }
    }

    /// <summary>The meta group is to record this; without a leader it is lost.</summary>
    public void Record(ReadOnlySpan<byte> command)
    {
        if (_meta is null || !Command.TryRead(command, out Command decoded) || MetaCommand.Read(in decoded) is not { } wanted)
        {
            return;
        }

        if (_core.Role == RaftRole.Leader)
        {
            if (_clients.IsServing && !_clients.IsDraining && _meta.MayPropose(wanted))
            {
                _clients.Add(command);
            }
        }
        else if (!_core.Leader.IsNone)
        {
            _output.Send(this, new RaftMessage { Kind = RaftMessageKind.Forward, From = _options.Self, To = _core.Leader }, command);
        }
    }

    public void Fetched(NodeId follower, LogIndex first, ReadOnlySpan<byte> entries)
    {
        if (_core.CompleteFetch(follower, first, entries, out RaftMessage append))
        {
            _output.Send(this, append, entries);
        }
    }

    public void Tick()
    {
        _life?.Tick(_core);
        if (!IsLeader && !_core.Leader.IsNone)
        {
            _catchUp.Tick(_states.Applied < _core.DurableIndex ? _states.Applied : _core.DurableIndex, _core.HeardCommit);
        }

        if (IsStill)
        {
            return;
        }

        _core.IsStalled = _output.IsLogStalled;
        _core.IsReluctant = _output.IsLate;
        _core.Tick();
        _clients.TickBuffers();
        _states.Tick(_core);
        if (_meta?.Tick(_clients.IsServing && IsLeader, bytes => Record(bytes.Written)) is { } start)
        {
            SaveStart(start);
        }

        // In an epoch that began after the directory was lost there is nothing to make good.
        bool isRestored = _core.CanRejoin || (_life is not null && _core.IsVoting);
        Volatile.Write(ref _canRejoin, isRestored && ArePromisesDurable);
        if (_life is null && _core is { IsStalled: true, Role: RaftRole.Leader, IsTransferring: false })
        {
            // Two healthy disks are a majority: somebody leads who can use them.
            HandOver(_core.Successor());
        }

        if (!_clients.IsServing || _core.Role != RaftRole.Leader)
        {
            return;
        }

        _clients.Tick();
        if (_audit.IsDue(_clients.ClusterMs, Applied, _states.HasDeadlines) && _clients.TryCheck(CheckKind.Mark))
        {
            _audit.Asked(_clients.ClusterMs);
        }

        if (++_ticks >= _options.PlacementTicks << _moves && !_clients.IsDraining)
        {
            _ticks = 0;
            MoveToPreferred();
        }
    }

    /// <summary>Takes no new operations; hands leadership to the follower that has most of the log, of those that may lead.</summary>
    public void Drain()
    {
        _clients.IsDraining = true;
        HandOver(_core.Successor());
    }

    /// <summary>Answers everything that still waits.</summary>
    public void Close() => _clients.Close();

    /// <summary>A rule is broken: keeps the evidence, answers, and takes nothing any more.</summary>
    public void Fail()
    {
        Failed = true;
        _clients.Fail();
        _states.Stop();
        Publish();
    }

    // ---- The stored state

    /// <summary>What the state thread asks for or tells.</summary>
    public void Take(StateCall call)
    {
        if (call.Epoch != Stamp.Epoch)
        {
            TakeOfOtherEpoch(call);
            return;
        }

        switch (call)
        {
            case BeginView { Transfer: not 0 } begin:
                _states.BeginSending(begin.Transfer, mayBegin: !Failed);
                break;
            case TakeRecords { Transfer: not 0 } take:
                _states.TakeForSending(take.Transfer, take.Slice, take.BytesMax);
                break;
            case EndView end:
                _states.EndSending(end.Transfer);
                break;
            case BeginView begin:
                _states.BeginView(mayBegin: !Failed, begin.Whole);
                break;
            case TakeRecords take:
                _states.Take(take.Slice, take.BytesMax, _core.DurableIndex);
                break;
            case StateStored stored:
                _states.StoredThrough(stored.Index);
                break;
            case StateNotStored:
                _states.NotStored();
                break;
            case SnapshotSent sent:
                _states.Sent(sent.Follower, sent.Index, sent.Installed);
                _core.SnapshotEnded(sent.Follower, sent.Index, sent.Installed);
                break;
            case PrepareInstall prepare:
                _states.AnswerInstall(Failed ? InstallAnswer.Superseded : Prepare(prepare.Mark));
                break;
            case DropState:
                _states.Drop();
                break;
            case Install { State: { } state, Mark: var mark }:
                _clients.LoseProposed();
                InvariantException.Require(_core.InstallSnapshot(mark.Index, mark.Term), "a prepared state is installed");
                if (_life is null)
                {
                    RestartLog(mark.Index, mark.Term);
                }

                _states.Install(state, mark);
                _audit.Forget();
                _meta?.Changed();
                _trace?.StateLoaded(mark.Index, mark.Term, state.Digest);
                Volatile.Write(ref _commit, (long)_core.CommitIndex.Value);
                break;
            case Install:
                _states.GoOn();
                break;
        }
    }

    /// <summary>The call is about what is no more, and is answered so.</summary>
    private void TakeOfOtherEpoch(StateCall call)
    {
        switch (call)
        {
            case BeginView begin:
                _ports.Keeper.Post(new ViewBegun(Group, null, begin.Whole, begin.Transfer));
                break;
            case TakeRecords take:
                _ports.Keeper.Post(new RecordsTaken(Group, take.Slice, More: false, Ended: true, 0, take.Transfer));
                break;
            case PrepareInstall:
                _ports.Keeper.Post(new InstallAnswered(Group, InstallAnswer.Superseded));
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
        return _core.Term < mark.Term || _core.PromisesUnsaved || !ArePromisesDurable || IsStill ? InstallAnswer.NotNow : InstallAnswer.Ready;
    }

    // ---- The turn

    /// <summary>First half: propose what waits, hand entries to the log and messages to the peers.</summary>
    public void Propose()
    {
        _clients.BeginTurn();
        _inHand = false;
        _handedOut = default;
        if (IsStill)
        {
            return;
        }

        _trace?.LookAtRole(_core);
        LookWhetherLeading();
        _clients.Propose();
        if (!_core.HasReady)
        {
            return;
        }

        _inHand = true;
        (LogIndex first, LogIndex last) = _core.Unpersisted;
        if (first <= last)
        {
            _core.Payload(last, out Term term, out _);
            if (_life is null)
            {
                _output.Persist(Group, _core, first, last);
                _output.NotifyPersisted(this, last, term);
            }
            else
            {
                // Memory is all the storage there is.
                _handedOut = last;
                _handedOutTerm = term;
            }
        }

        if (_life is null ? _core.HardStateChanged : _core.PromisesChanged)
        {
            SaveHardState(_core.HardState);
        }

        SendMessages();

        foreach (ref readonly LogFetch fetch in _core.Fetches)
        {
            _output.Fetch(Group, fetch);
        }

        foreach (NodeId follower in _core.SnapshotsWanted)
        {
            _states.Send(follower, _core.Term, Stamp.Epoch);
        }
    }

    private void SendMessages()
    {
        foreach (ref readonly OutgoingMessage outgoing in _core.Messages)
        {
            if (!outgoing.AfterDurable)
            {
                if (outgoing.Message.To != _options.Self)
                {
                    _output.Send(this, outgoing.Message, _core);
                }
            }
            else if (_life is null || _savesPending > 0)
            {
                _output.SendAfterDurable(this, outgoing.Message);
            }
            else
            {
                _output.SendDurable(this, outgoing.Message);
            }
        }
    }

    private void SaveHardState(in HardState state)
    {
        if (_life is null)
        {
            _output.Persist(Group, state);
            _promisesBatch = _core.PromisesChanged ? _output.Submitted + 1 : _promisesBatch;
            return;
        }

        _savesPending++;
        _output.PersistAlone(this, Group, _life.Stored(state));
    }

    /// <summary>Has the log begin anew behind the state that was put in place.</summary>
    private void RestartLog(LogIndex index, Term term)
    {
        _states.LogRestarts(index, term);
        _output.RestartLog(Group, index, term);
        _output.NotifyPersisted(this, index, term);
    }

    /// <summary>Stores the number of this start.</summary>
    private void SaveStart(in HardState start)
    {
        _savesPending++;
        _output.PersistAlone(this, GroupId.Node, start);
    }

    /// <summary>Whatever was is void; this node takes part in the new epoch from empty, with the terms and votes that it remembers.</summary>
    private void BeginEpoch(VotingRight voting)
    {
        HardState promises = _core.Promises;
        _clients.LoseProposed();
        LoseLeadership();
        StateLimits limits = _options.StateLimits.InEpoch(_life!.Epoch) with { LeasesBeforeMs = _life.LeasesBeforeMs };
        _states.BeginAnew(new StateMachine(limits));
        _audit.Forget();
        _core = new PartitionRecovery(Group, _options, _ports).EmptyCore(promises, voting);
        _core.SaveAgain();
        _catchUp.Reset();
        _clients.Core = _core;
        _clients.Epoch = _life.Epoch;
        _term = default;
        Volatile.Write(ref _commit, 0);
        _ports.Report($"{Group.Title}: epoch {_life.Epoch} begins on this node{(voting == VotingRight.Full ? ", empty" : ", which waits to be restored")}.");
    }

    /// <summary>Second half, after the log and the peers have theirs: apply a slice of what is committed, serve what is confirmed. True when another round is due at once.</summary>
    public bool Finish()
    {
        if (IsStill)
        {
            Publish();
            return false;
        }

        bool isMoreCommitted = false;
        if (_inHand)
        {
            _trace?.LookAtCommit(_core);
            (LogIndex first, LogIndex last) = _core.Committed;
            isMoreCommitted = last < _core.HardState.Commit;
            for (LogIndex index = first; index <= last; index = index.Next())
            {
                ReadOnlySpan<byte> payload = _core.Payload(index, out Term term, out EntryKind kind);
                ApplyEntry(index, term, kind, payload);
            }

            _trace?.EndApply();

            foreach (ref readonly ReadState state in _core.ReadStates)
            {
                _clients.Confirm(state);
            }

            _core.Advance();
            if (_handedOut.Value > 0)
            {
                _core.Persisted(_handedOut, _handedOutTerm);
            }

            Volatile.Write(ref _commit, (long)_core.CommitIndex.Value);
        }

        _meta?.Publish(_states.State);
        if (_clients.ServeReads() || isMoreCommitted)
        {
            _output.Again.Add(this);
        }

        Publish();

        // The rest of a large backlog waits for the next turn, which takes in ticks and messages first.
        return !isMoreCommitted && (_core.HasReady || _clients.IsDue);
    }

    private void MoveToPreferred()
    {
        NodeId preferred = _options.PreferredLeader(_partition);
        if (preferred != _options.Self && _core.IsActive(preferred) && _core.IsSteady(preferred) && _core.MatchIndex(preferred).Value + 64 >= _core.LastIndex.Value)
        {
            // Writes wait while it lasts: a node that does not take leadership is asked less and less often.
            _moves = Math.Min(_moves + (HandOver(preferred) ? 1 : 0), MovesMax);
        }
    }

    /// <summary>Begins to hand leadership to a member; not where it cannot take it. What the next leader counts time from goes before.</summary>
    private bool HandOver(NodeId target)
    {
        if (!_core.CanTransfer(target))
        {
            return false;
        }

        if (_clients.IsServing && !_core.IsTransferring && _states.HasDeadlines)
        {
            _clients.TryCheck(CheckKind.Mark);
        }

        return _core.TryTransfer(target);
    }

    /// <summary>A member, or this node, has told the digest of its state at a mark.</summary>
    private void Compare(NodeId member, LogIndex index, ulong digest)
    {
        if (_core.Role == RaftRole.Leader && _clients.IsServing && _audit.Answered(member, index, digest, _clients.ClusterMs) is { } verdict)
        {
            _clients.TryCheck(verdict.Kind, verdict.Index, verdict.Digest);
        }
    }

    private void ApplyEntry(LogIndex index, Term term, EntryKind kind, ReadOnlySpan<byte> payload)
    {
        InvariantException.Require(index == _states.Applied.Next(), "entries are applied once and in order");
        int replies = _clients.Committed(index, term);
        if (replies > 0)
        {
            _trace?.Acknowledged(index, term, replies);
        }

        ApplyPayload(index, kind, payload, replies);
        if (kind == EntryKind.Check && _audit.Marked == index)
        {
            TellDigest();
        }

        _states.MarkApplied(index, term);
        _trace?.Applied(index, _states.State.Digest);
        if (!_clients.IsServing && _core.Role == RaftRole.Leader && term == _core.Term)
        {
            _clients.BeginServing();
            _audit.BeginServing(_clients.ClusterMs);
        }
    }

    /// <summary>The leader compares what the members have at a mark.</summary>
    private void TellDigest()
    {
        if (_core.Role == RaftRole.Leader)
        {
            Compare(_options.Self, _audit.Marked, _audit.Digest);
        }
        else if (!_core.Leader.IsNone)
        {
            _output.Send(this, new RaftMessage { Kind = RaftMessageKind.Digest, From = _options.Self, To = _core.Leader, Index = _audit.Marked, Round = _audit.Digest }, []);
        }
    }

    /// <summary>The one way from an entry to the state: leader, follower and restart all go through it.</summary>
    private void ApplyPayload(LogIndex index, EntryKind kind, ReadOnlySpan<byte> payload, int replies)
    {
        if (kind == EntryKind.Check)
        {
            ApplyCheck(index, payload);
        }

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
            _clients.Apply(command, _states.State.Ahead.HashOf(i % Prefetcher.CommandsMax), isAwaited: replies > 0);
            _meta?.Applied(in command);
        }
    }

    private void ApplyCheck(LogIndex index, ReadOnlySpan<byte> payload)
    {
        bool decodes = CheckEntry.TryRead(payload, out CheckEntry check);
        InvariantException.Require(decodes, "a committed check decodes");
        _states.State.BeginEntry(check.TimeMs);
        if (check.Kind == CheckKind.Mark)
        {
            // While the log is replayed there is no core yet, and nobody to tell.
            _audit.Mark(index, _states.State.Digest, isLeader: _core is { Role: RaftRole.Leader });
        }
        else
        {
            // What the log had at the start is replayed only as far as it is known to be committed; the rest comes through here later.
            _audit.Judge(check, index, isRecovered: _core is null || index <= _recovered);
        }
    }

    private void LookWhetherLeading()
    {
        if (_core.Role != RaftRole.Leader || _core.Term != _term)
        {
            LoseLeadership();
            _term = _core.Term;
        }
        else if (_core.IsTransferring)
        {
            // What waits to be proposed is dropped.
            _meta?.LoseProposed();
        }
    }

    private void LoseLeadership()
    {
        _ticks = 0;
        _moves = 0;
        _states.SendNothing();
        _meta?.LoseProposed();
        _clients.LoseLeadership();
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
