using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Frames;
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
    private readonly GroupId _group;
    private readonly bool _isEphemeral;
    private readonly TurnClock _turn;
    private readonly LogWatch _logWatch;
    private readonly ReplyFrames _replies;
    private readonly AppliedState _applied;
    private readonly WriteRules _rules;
    private readonly ProposalQueue _proposals;
    private readonly PendingReads _reads;
    private readonly LockWaiters _locks;
    private readonly RangeCuts _cuts;
    private readonly TransactionHolds _holds;
    private readonly Housekeeping _housekeeping;
    private readonly PauseGuard _pause;
    private ClusterClock _clock;
    private NodeTime _deposedAt;
    private ulong _openTicket;
    private bool _hasOpenTicket;

    public PendingRequests(RequestParts parts, Func<long, bool>? mayLease)
    {
        _options = parts.Options;
        _group = parts.Group;
        _isEphemeral = parts.Group.IsEphemeral;
        _turn = parts.Clock;
        _logWatch = parts.LogWatch;
        _replies = parts.Replies;
        _applied = parts.Applied;
        _proposals = new ProposalQueue(_options.EntryBytesMax, _replies);
        _holds = new TransactionHolds(_turn, _replies, _proposals);
        _rules = new WriteRules(parts, mayLease, _holds);
        ParkedReads parked = new(_replies);
        _locks = new LockWaiters(_options, _turn, _replies, _applied, parked);
        _cuts = new RangeCuts(parts);
        _reads = new PendingReads(_replies, _applied, _locks, parked, _cuts, _holds) { Group = parts.Group };
        _housekeeping = new Housekeeping(parts, _proposals, _locks);
        _pause = new PauseGuard(_turn);
        Commands = new AppliedCommands(parts, _proposals, _housekeeping, _holds);
    }

    /// <summary>Applies the commands of committed entries.</summary>
    public AppliedCommands Commands { get; }

    /// <summary>This node leads and has applied an entry of its own term.</summary>
    public bool IsServing { get; private set; }

    /// <summary>The version of the slot map that this node knows; 0 until it knows one.</summary>
    public ulong SlotMapVersion { get; set; }

    /// <summary>The node stops, and takes nothing new.</summary>
    public bool IsDraining { get; set; }

    /// <summary>Reads that wait until their clients take the answers they have. For tests while no turn runs.</summary>
    public int Parked => _reads.Parked;

    /// <summary>A page of a list may be read now.</summary>
    public bool HasPages => _reads.HasPages;

    /// <summary>Open cuts.</summary>
    public int Cuts => _cuts.Count;

    /// <summary>What pessimistic transactions hold.</summary>
    public HoldCounts Holds => _holds.Counts;

    /// <summary>Writes that are queued or proposed, and not answered yet.</summary>
    public int PendingWrites => _proposals.Queued + _proposals.Proposed;

    /// <summary>Reads that wait for their round, or for their turn.</summary>
    public int PendingReads => _reads.Count;

    /// <summary>Reads of locks whose answer is delayed until there is news.</summary>
    public int LongPolls => _locks.Held;

    /// <summary>Nothing is proposed for a few ms. Nobody else may wake the group when they are over.</summary>
    public bool HoldsProposals => _cuts.Hold.IsOn;

    public bool HasQueued => _proposals.Queued > 0;

    public bool IsIdle => _proposals.Queued == 0 && _proposals.Proposed == 0 && _reads.Count == 0;

    /// <summary>Proposals wait, and may go, or answers that were left to the next turn.</summary>
    public bool IsDue(RaftCore core) =>
        (_proposals.Queued > 0 && CanPropose(core)) || (IsServing && (_locks.IsDue || _holds.HasGranted));

    /// <summary>Cluster time, while this node serves.</summary>
    public ClusterTime ClusterNow => _clock.At(_turn.Now);

    /// <inheritdoc cref="LockWaiters.WaitedMs"/>
    public long? WaitedMs(FencingToken token) => _locks.WaitedMs(token);

    /// <summary>A start has replayed commands.</summary>
    public void Replayed(int commands) => _housekeeping.Replayed(commands);

    /// <summary>An epoch of an ephemeral group begins.</summary>
    public void BeginEpoch(Epoch epoch) => _rules.Epoch = epoch;

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
            _replies.Reply(batch.Sink, op.Number, NotLeader(core));
        }
        else if (_turn.Now - batch.Arrival > (op.WaitMs is 0 or > Limits.CommandWaitMsMax ? Limits.CommandWaitMsMax
            : op.WaitMs))
        {
            _replies.Tell(op.Number, _group, confirmed: 0, Command.KeyOf(batch.Command(op)));
            _replies.ReplyError(batch.Sink, op.Number, OutcomeStatus.Expired,
                "The time limit passed before the operation was begun.");
        }
        else if (WriteRules.RefuseLevel(batch.Command(op), core) is { } reason)
        {
            _replies.ReplyError(batch.Sink, op.Number, OutcomeStatus.Unimplemented, reason);
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

        bool evicts = _housekeeping.Evicts && !IsDraining && _housekeeping.TryEvict(core);
        ClusterTime time = _clock.At(_turn.Now);
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

            _proposals.MarkProposed(index, core.Term, time, payload);
            if (evicts)
            {
                _housekeeping.EvictedWith(index);
            }
        }
    }

    /// <summary>A tick: answers what was held back long enough, and proposes what is due.</summary>
    public void Tick()
    {
        _locks.Tick(_clock.At(_turn.Now));
        _holds.Tick();
        if (_cuts.Count > 0)
        {
            _cuts.Tick();
        }

        _reads.WakeAll();
        _housekeeping.Tick(_turn.Now, _turn.Resumed, _clock.At(_turn.Now), IsDraining);
    }

    /// <summary>
    /// A tick, on leaders and on followers: gives back room that is no longer needed since the load fell.
    /// </summary>
    public void TickBuffers() => _proposals.Tick();

    /// <summary>Answers of a client have left, for which reads may wait here.</summary>
    public void Left(ReplySink sink) => _reads.Wake(sink);

    /// <summary>The node's own log has the entries up to this one on stable storage.</summary>
    public void Persisted(LogIndex index) => _proposals.Persisted(index);

    /// <summary>The entries up to this one are committed, and are about to be applied.</summary>
    public void BeginApply(LogIndex committed) => _proposals.BeginApply(committed);

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
        _clock.Anchor(_applied.Time, _turn.Now);
        _housekeeping.BeginServing(_turn.Now);
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
        ClusterTime now = _clock.At(_turn.Now);
        if (!_locks.IsIdle)
        {
            _locks.ServeChanges(now);
        }

        if (IsServing && !IsDraining && _housekeeping.HasGrants)
        {
            _housekeeping.GrantOn(now);
        }

        return (!_reads.IsEmpty || _holds.HasGranted) && _reads.Serve(now);
    }

    /// <inheritdoc cref="PendingReads.ServePage"/>
    public void ServePage() => _reads.ServePage(_clock.At(_turn.Now));

    /// <summary>
    /// This node leads no more, or again: what is not proposed, and reads, did not happen. The end of what is proposed
    /// is not known here: numbered writes are answered so at once, because their callers repeat them at the next leader
    /// and get the first outcome. A write without a number cannot be repeated: it waits for its entry, or for what
    /// takes its place, for two election timeouts. Called in each turn in which the node does not lead.
    /// </summary>
    public void LoseLeadership(RaftCore core)
    {
        _deposedAt = IsServing ? _turn.Now : _deposedAt;
        IsServing = false;
        ReleaseProposed();
        _pause.LoseLeadership();
        _housekeeping.Drop();
        if (!_locks.IsIdle)
        {
            _locks.Drop(OutcomeStatus.NotLeader, core.Leader.Value);
        }

        if (!_holds.IsIdle)
        {
            _holds.Drop(OutcomeStatus.NotLeader, core.LeaderToAsk.Value);
        }

        _cuts.Drop();
        if (_proposals.Queued > 0)
        {
            _proposals.DropQueued(OutcomeStatus.NotLeader, core.LeaderToAsk.Value);
        }

        if (!_reads.IsEmpty)
        {
            _reads.Drop(OutcomeStatus.NotLeader, core.LeaderToAsk.Value);
        }
    }

    /// <summary>The log is replaced, or void: the outcome of pending proposals is no longer known.</summary>
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
        _holds.Drop(OutcomeStatus.Unavailable, 0);
        _cuts.Drop();
    }

    /// <summary>A rule is broken: answers everything.</summary>
    public void Fail()
    {
        _proposals.DropProposed(OutcomeStatus.Internal);
        _proposals.DropQueued(OutcomeStatus.Unavailable);
        _reads.Drop(OutcomeStatus.Internal, 0);
        _locks.Drop(OutcomeStatus.Internal, 0);
        _holds.Drop(OutcomeStatus.Internal, 0);
        _cuts.Drop();
    }

    /// <summary>For so long the next leader's entries may be on their way.</summary>
    private long DeposedMsMax => 2L * _options.ElectionTicks * _options.TickMs;

    private void ReleaseProposed()
    {
        if (_proposals.Proposed == 0)
        {
            return;
        }

        if (_turn.Now - _deposedAt >= DeposedMsMax)
        {
            LoseProposed();
            return;
        }

        _proposals.ReleaseNumbered();
    }

    private bool CanPropose(RaftCore core) =>
        IsServing && core.Role == RaftRole.Leader && !_cuts.Hold.IsOn
            && (_isEphemeral ? HasRoom(core) : _logWatch.Pending < _options.LogBatchesInFlight);

    private bool HasRoom(RaftCore core) =>
        core.LastIndex.Value - core.CommitIndex.Value < (ulong)_options.EphemeralEntriesInFlight;

    private Outcome NotLeader(RaftCore core) =>
        new(OutcomeStatus.NotLeader, revision: (long)SlotMapVersion, number: core.Leader.Value);

    private void AcceptRead(RaftCore core, ClientBatch batch, int operation)
    {
        if (!_hasOpenTicket)
        {
            if (!core.TryRead(out _openTicket))
            {
                _replies.Reply(batch.Sink, batch.Operations[operation].Number, NotLeader(core));
                return;
            }

            _hasOpenTicket = true;
        }

        ReadOnlySpan<byte> command = batch.Command(batch.Operations[operation]);
        if ((CommandKind)command[0] == CommandKind.CutOpen)
        {
            _cuts.Accept(core, command);
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

/// <summary>What the requests of a group work with. Immutable; its parts belong to the group and its loop.</summary>
/// <param name="Group">The group.</param>
/// <param name="Options">Sizes and times.</param>
/// <param name="Applied">The group's state.</param>
/// <param name="Memory">The group's share of the node's memory.</param>
internal sealed record RequestParts(GroupId Group, LoopOptions Options, AppliedState Applied, MemoryShare Memory)
{
    /// <summary>The time of the loop's turns.</summary>
    public required TurnClock Clock { get; init; }

    /// <summary>How the node's log does.</summary>
    public required LogWatch LogWatch { get; init; }

    /// <summary>Where answers go.</summary>
    public required ReplyFrames Replies { get; init; }

    /// <summary>Ends transactions that are late; null: nobody does.</summary>
    public ITransactionSettler? Settler { get; init; }
}

/// <summary>
/// The answers that a loop gives in one turn, gathered so that each client gets one frame. Owned by one loop; not
/// thread-safe.
/// </summary>
/// <param name="loop">The loop; it hears when answers have left, where it asks for that.</param>
/// <param name="trace">Hears what answers rest on before they leave.</param>
/// <param name="times">Gets every answer; null: answers are not counted.</param>
internal sealed class ReplyFrames(IRoomListener loop, IPartitionTrace? trace, OperationTimes? times = null)
{
    private readonly int _loop = loop.Number;
    private readonly List<ReplySink> _sinks = [];
    private RequestTag _open;

    /// <summary>Gets every answer; null: answers are not counted.</summary>
    public OperationTimes? Times => times;

    /// <summary>The present moment, if somebody wants to know what takes long; else 0.</summary>
    public uint Stamp() => times?.Present ?? 0;

    /// <summary>When this round began to apply and to answer, as <see cref="Stamp"/>.</summary>
    public uint AnswersBegan => times?.AnswersBegan ?? 0;

    /// <summary>The next answer is that of this read, or a refusal.</summary>
    /// <param name="number">By what it is known.</param>
    /// <param name="group">The group that answers.</param>
    /// <param name="confirmed">When the read's round was confirmed; 0: it was refused, or nobody has looked.</param>
    /// <param name="key">Its key.</param>
    public void Tell(in RequestTag number, GroupId group, uint confirmed, ReadOnlySpan<byte> key) =>
        times?.Tell(number, group, new OperationStages(Confirmed: confirmed), key);

    /// <summary>What a round has to send is on its way: it begins to apply and to answer.</summary>
    public void BeginAnswers() => times?.BeginAnswers();

    /// <summary>
    /// Opens one reply in the sink's frame of this turn; the caller appends the outcome and calls
    /// <see cref="EndReply"/>.
    /// </summary>
    public ByteBuffer BeginReply(ReplySink sink, RequestTag number, out int at)
    {
        ByteBuffer? frame = sink.Open[_loop];
        if (frame is null)
        {
            frame = ByteBuffer.Rent(16 * 1024);
            Frame.Begin(frame, FrameKind.Replies);
            sink.Open[_loop] = frame;
            sink.OpenCount[_loop] = 0;
            _sinks.Add(sink);
        }

        at = frame.Length;
        _open = number;
        Frame.BeginReply(frame, number.Number);
        return frame;
    }

    /// <summary>
    /// Ends the reply that was begun at <paramref name="at"/>. A frame that has become large leaves at once.
    /// </summary>
    public void EndReply(ReplySink sink, ByteBuffer frame, int at)
    {
        InvariantException.Require(frame == sink.Open[_loop] && at < frame.Length,
            "a reply ends in the frame that it was begun in");
        Frame.EndReply(frame, at);
        sink.OpenCount[_loop]++;
        times?.Ended(_open, (OutcomeStatus)frame.Array[at + Frame.ReplyHeaderBytes]);
        if (frame.Length >= Wire.Limits.FrameBytesTarget)
        {
            sink.Open[_loop] = null;
            _sinks.Remove(sink);
            trace?.Flush();
            sink.Deliver(frame, sink.OpenCount[_loop]);
        }
    }

    /// <summary>A read's answer of <paramref name="answerBytes"/> may be made for the client now.</summary>
    public bool HasRoom(ReplySink sink, int answerBytes) =>
        sink.HasRoomForRead(sink.Open[_loop]?.Length ?? 0, answerBytes);

    /// <summary>The sink tells the loop, once, when something has left.</summary>
    public void TellWhenLeft(ReplySink sink) => sink.TellWhenLeft(loop);

    /// <summary>
    /// A rule is broken in the middle of an answer: nothing of what was begun may stay in the client's frame.
    /// </summary>
    public void GiveUpReply(ReplySink sink, RequestTag number, ByteBuffer frame, int at)
    {
        frame.Length = at;
        ReplyError(sink, number, OutcomeStatus.Internal,
            "The partition has stopped on an internal error; see the node's log.");
    }

    /// <summary>
    /// As <see cref="EndReply"/>, for a read. False when the answer is larger than the client's room: it is taken back.
    /// </summary>
    public bool TryEndRead(ReplySink sink, ByteBuffer frame, int at)
    {
        if (!sink.HasRoomForRead(at, frame.Length - at))
        {
            frame.Length = at;
            times?.Forget();
            return false;
        }

        EndReply(sink, frame, at);
        return true;
    }

    /// <summary>
    /// As <see cref="EndReply"/>, for a write, which is applied and cannot wait. False when the answer has a value
    /// larger than the client's room: it is taken back.
    /// </summary>
    public bool TryEndWrite(ReplySink sink, ByteBuffer frame, int at)
    {
        if (!sink.HasRoomForWrite(at, frame.Length - at))
        {
            frame.Length = at;
            return false;
        }

        EndReply(sink, frame, at);
        return true;
    }

    /// <summary>Answers with an outcome.</summary>
    public void Reply(ReplySink sink, RequestTag number, scoped in Outcome outcome)
    {
        ByteBuffer frame = BeginReply(sink, number, out int at);
        outcome.Write(frame);
        EndReply(sink, frame, at);
    }

    /// <summary>Answers with a refusal that says why.</summary>
    public void ReplyError(ReplySink sink, RequestTag number, OutcomeStatus status, string sentence)
    {
        ByteBuffer frame = BeginReply(sink, number, out int at);
        Outcome.WriteError(frame, status, sentence);
        EndReply(sink, frame, at);
    }

    /// <summary>Hands each client its frame.</summary>
    public void Deliver()
    {
        trace?.Flush();
        times?.EndRound();
        foreach (ReplySink sink in _sinks)
        {
            ByteBuffer frame = sink.Open[_loop]!;
            sink.Open[_loop] = null;
            if (sink.OpenCount[_loop] == 0)
            {
                // Its only answer was taken back.
                frame.Return();
                continue;
            }

            sink.Deliver(frame, sink.OpenCount[_loop]);
        }

        _sinks.Clear();
    }
}
