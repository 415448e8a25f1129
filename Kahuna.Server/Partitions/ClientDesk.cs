using Kahuna.Client.Wire;
using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Commands;
using Kahuna.Client.Wire.Outcomes;
using Kahuna.Server.Partitions.Ephemeral;
using Kahuna.Server.Partitions.Locks;
using Kahuna.Server.Partitions.States;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;

namespace Kahuna.Server.Partitions;

/// <summary>
/// What clients want of a partition, from its arrival to the answer: writes that wait to be proposed and then for their entry, reads that wait for their round. Everybody gets one answer,
/// also when leadership is lost. Owned by one <see cref="Partition"/>; not thread-safe.
/// </summary>
internal sealed class ClientDesk
{
    private readonly GroupId _group;
    private readonly LoopOptions _options;
    private readonly TurnOutput _output;
    private readonly StateDesk _states;
    private readonly ProposalQueue _proposals;
    private readonly ParkedReads _parked;
    private readonly ReadDesk _reads;
    private readonly LockDesk _locks;
    private readonly LeaderChores _chores;
    private readonly StandstillGuard _standstill;
    private readonly Action<ProposalQueue.PendingReply> _answerNotLeader;
    private readonly Action<ProposalQueue.PendingReply> _answerUnknown;
    private ClusterClock _clock;
    private long _deposedMs;
    private ulong _openTicket;
    private bool _hasOpenTicket;

    public ClientDesk(GroupId group, LoopOptions options, TurnOutput output, StateDesk states, EphemeralMemory memory)
    {
        _group = group;
        _options = options;
        _output = output;
        _states = states;
        _proposals = new ProposalQueue(options.EntryBytesMax);
        _parked = new ParkedReads(output);
        _locks = new LockDesk(options, output, states, _parked);
        _reads = new ReadDesk(output, states, _locks, _parked);
        _chores = new LeaderChores(group, options, states, memory, _proposals, _locks);
        _standstill = new StandstillGuard(output);
        _answerNotLeader = reply => Answer(reply, OutcomeStatus.NotLeader, Core.LeaderToAsk.Value);
        _answerUnknown = reply => Answer(reply, OutcomeStatus.Unknown);
    }

    /// <summary>The group's core, once its log is recovered; another one in each epoch of an ephemeral group.</summary>
    public RaftCore Core { get; set; } = null!;

    /// <summary>The epoch of an ephemeral group.</summary>
    public ulong Epoch { get; set; }

    /// <summary>Asks for leases of so many ms in an ephemeral group; false while the meta group has not made room for them.</summary>
    public Func<long, bool>? MayLease { get; set; }

    /// <summary>This node leads and has applied an entry of its own term.</summary>
    public bool IsServing { get; private set; }

    /// <summary>The node stops, and takes nothing new.</summary>
    public bool IsDraining { get; set; }

    /// <summary>Reads that wait until their clients take the answers they have. For tests while no turn runs.</summary>
    public int Parked => _parked.Count;

    public bool HasQueued => _proposals.Queued > 0;

    public bool IsIdle => _proposals.Queued == 0 && _proposals.Proposed == 0 && _reads.Count == 0;

    /// <summary>Proposals wait, and may go, or answers that were left to the next turn.</summary>
    public bool IsDue => (_proposals.Queued > 0 && CanPropose) || (IsServing && _locks.IsDue);

    /// <summary>One checked operation of a client. A read keeps the batch held until it is answered.</summary>
    public void Accept(ClientBatch batch, int operation, bool hasFailed)
    {
        ref readonly ClientOperation op = ref batch.Operations[operation];
        if (hasFailed)
        {
            _output.ReplyError(batch.Sink, op.Number, OutcomeStatus.Internal, "The partition has stopped on an internal error; see the node's log.");
        }
        else if (IsDraining)
        {
            _output.ReplyError(batch.Sink, op.Number, OutcomeStatus.Unavailable, "The node is stopping.");
        }
        else if (_output.IsLate && Command.IsOpening(batch.Command(op)) && _standstill.RefusesOpening(Core, IsServing))
        {
            _output.ReplyError(batch.Sink, op.Number, OutcomeStatus.Unavailable, "The node stood still, and the command may be older than it looks; send it again.");
        }
        else if (Core.Role != RaftRole.Leader)
        {
            _output.Reply(batch.Sink, op.Number, new Outcome(OutcomeStatus.NotLeader, number: Core.Leader.Value));
        }
        else if (_output.NowMs - batch.ArrivalMs > (op.WaitMs is 0 or > Limits.CommandWaitMsMax ? Limits.CommandWaitMsMax : op.WaitMs))
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

    /// <summary>A write of the node itself, which nobody waits for.</summary>
    public void Add(ReadOnlySpan<byte> command) => _proposals.Add(command, null, 0);

    /// <summary>A turn begins: reads that come now need a round that begins after it.</summary>
    public void BeginTurn() => _hasOpenTicket = false;

    /// <summary>Proposes what waits, as far as it may.</summary>
    public void Propose()
    {
        if (!CanPropose)
        {
            return;
        }

        bool evicts = !IsDraining && _chores.TryEvict(Core);
        long timeMs = _clock.At(_output.NowMs);
        while (_proposals.TryPeek(timeMs, out ReadOnlySpan<byte> payload))
        {
            if (!Core.TryPropose(EntryKind.Commands, payload, out LogIndex index))
            {
                // Leadership is being handed over; whoever leads next is told by the hint. A sweep that waited is gone, too.
                _proposals.DropQueued(_answerNotLeader);
                _chores.Drop();
                return;
            }

            _proposals.MarkProposed(index, Core.Term);
            if (evicts)
            {
                _chores.EvictedWith(index);
            }
        }
    }

    /// <summary>Cluster time, while this node serves.</summary>
    public long ClusterMs => _clock.At(_output.NowMs);

    /// <summary>Proposes an entry that stamps the cluster's time and compares states. False when nothing may be proposed now.</summary>
    public bool TryCheck(CheckKind kind, LogIndex index = default, ulong digest = 0)
    {
        Span<byte> payload = stackalloc byte[CheckEntry.Bytes];
        new CheckEntry(ClusterMs, kind, index, digest).Write(payload);
        return Core.TryPropose(EntryKind.Check, payload, out _);
    }

    /// <summary>A tick: answers what was held back long enough, and proposes what is due.</summary>
    public void Tick()
    {
        _locks.Tick(_clock.At(_output.NowMs));
        _parked.WakeAll();
        _chores.Tick(_output.NowMs, _output.SteadySinceMs, _clock.At(_output.NowMs), IsDraining);
    }

    /// <summary>A tick, on leaders and on followers: gives back room that is no longer needed since the load fell.</summary>
    public void TickBuffers() => _proposals.Tick();

    /// <summary>Answers of a client have left, for which reads may wait here.</summary>
    public void Left(ReplySink sink) => _parked.Wake(sink);

    /// <summary>An entry is committed: how many of its commands are awaited. What it takes the place of is answered.</summary>
    public int Committed(LogIndex index, Term term)
    {
        _proposals.DropReplaced(index, term, _answerNotLeader);
        return _proposals.TryTake(index, out int replies) ? replies : 0;
    }

    /// <summary>Applies one command of an entry, and answers whoever waits for it.</summary>
    public void Apply(scoped in Command command, KnownHash known, bool isAwaited)
    {
        _chores.Applied(command.Kind);
        ProposalQueue.PendingReply reply = isAwaited ? _proposals.TakeReply() : default;
        if (reply.Sink is null)
        {
            _states.State.Apply(command, null, known);
            if (command.Kind == CommandKind.Evict)
            {
                // There is room again, before the next tick says so.
                _states.Weigh(Core);
            }

            return;
        }

        ByteBuffer frame = _output.BeginReply(reply.Sink, reply.Number, out int at);
        try
        {
            _states.State.Apply(command, frame, known);
        }
        catch (InvariantException)
        {
            _output.GiveUpReply(reply.Sink, reply.Number, frame, at);
            throw;
        }

        if (!_output.TryEndWrite(reply.Sink, frame, at))
        {
            // Who does not take answers with values does not learn how this write ended; under its number it may ask again.
            Answer(reply, OutcomeStatus.Unknown);
        }
    }

    /// <summary>An entry of this node's own leadership is applied: everything of earlier ones is, too.</summary>
    public void BeginServing()
    {
        IsServing = true;
        _clock.Anchor(_states.State.TimeMs, _output.NowMs);
        _chores.BeginServing(_output.NowMs);
        _standstill.BeginServing();
    }

    /// <summary>A round has confirmed reads.</summary>
    public void Confirm(in ReadState state)
    {
        _reads.Confirm(state);
        _standstill.Confirm(state.Ticket);
    }

    /// <summary>Answers the reads whose round is confirmed and applied, as far as a turn's slice and the clients' room reach. True: more can be answered in the next turn.</summary>
    public bool ServeReads()
    {
        long nowMs = _clock.At(_output.NowMs);
        _locks.ServeChanges(nowMs);
        if (IsServing && !IsDraining)
        {
            _chores.GrantOn(nowMs);
        }

        return _reads.Serve(nowMs);
    }

    /// <summary>
    /// This node leads no more, or again: what is not proposed, and reads, did not happen. The end of what is proposed is not known here: numbered writes are
    /// answered so at once, because their callers repeat them at the next leader and get the first outcome. A write without a number cannot be repeated: it
    /// waits for its entry, or for what takes its place, for two election timeouts. Called in each turn in which the node does not lead.
    /// </summary>
    public void LoseLeadership()
    {
        _deposedMs = IsServing ? _output.NowMs : _deposedMs;
        IsServing = false;
        ReleaseProposed();
        _standstill.LoseLeadership();
        _chores.Drop();
        _locks.Drop(OutcomeStatus.NotLeader, Core.Leader.Value);
        if (_proposals.Queued > 0)
        {
            _proposals.DropQueued(_answerNotLeader);
        }

        DropReads(OutcomeStatus.NotLeader);
    }

    /// <summary>The log is replaced, or void: the end of what was proposed is not known any more.</summary>
    public void LoseProposed() => _proposals.DropProposed(_answerUnknown);

    /// <summary>Answers everything that still waits: what was proposed with "unknown", the rest with "did not happen".</summary>
    public void Close()
    {
        LoseProposed();
        _proposals.DropQueued(reply => Answer(reply, OutcomeStatus.Unavailable));
        DropReads(OutcomeStatus.Unavailable);
        _locks.Drop(OutcomeStatus.Unavailable, 0);
    }

    /// <summary>A rule is broken: answers everything.</summary>
    public void Fail()
    {
        _proposals.DropProposed(reply => Answer(reply, OutcomeStatus.Internal));
        _proposals.DropQueued(reply => Answer(reply, OutcomeStatus.Unavailable));
        DropReads(OutcomeStatus.Internal);
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

        if (_output.NowMs - _deposedMs >= DeposedMsMax)
        {
            LoseProposed();
            return;
        }

        _proposals.ReleaseNumbered(_answerUnknown);
    }

    private bool CanPropose => IsServing && Core.Role == RaftRole.Leader && (_group.IsEphemeral ? HasRoom : _output.LogBatchesPending < _options.LogBatchesInFlight);

    private bool HasRoom => Core.LastIndex.Value - Core.CommitIndex.Value < (ulong)_options.EphemeralEntriesInFlight;

    private void AcceptRead(ClientBatch batch, int operation)
    {
        if (!_hasOpenTicket)
        {
            if (!Core.TryRead(out _openTicket))
            {
                _output.Reply(batch.Sink, batch.Operations[operation].Number, new Outcome(OutcomeStatus.NotLeader, number: Core.Leader.Value));
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
        else if (_group.IsEphemeral && Command.EpochOf(batch.Command(op)) is var epoch and not 0 && epoch != (ushort)Epoch)
        {
            _output.ReplyError(batch.Sink, op.Number, OutcomeStatus.Unavailable, "The partition has begun another epoch than the one that the command is for.");
        }
        else if (!_group.IsEphemeral && _output.RefuseWrites is { } reason)
        {
            _output.ReplyError(batch.Sink, op.Number, OutcomeStatus.LogFull, reason);
        }
        else if (MayGrow(batch.Command(op)) && _states.RefuseGrowth(_proposals.Bytes) is { } full)
        {
            _output.ReplyError(batch.Sink, op.Number, OutcomeStatus.MemoryFull, full);
        }
        else if (MayLease is not null && LeaseOf(batch.Command(op)) is var lease and not 0 && !MayLease(lease))
        {
            _output.ReplyError(batch.Sink, op.Number, OutcomeStatus.Unavailable, "The partition makes room for leases of this length; try again.");
        }
        else
        {
            _proposals.Add(batch.Command(op), batch.Sink, op.Number);
        }
    }

    /// <summary>The lease that a command asks for; 0: none.</summary>
    private static long LeaseOf(ReadOnlySpan<byte> bytes) =>
        (CommandKind)bytes[0] is CommandKind.LockAcquire or CommandKind.LockExtend && Command.TryRead(bytes, out Command command) ? command.TtlMs : 0;

    /// <summary>What frees memory is taken also when it is full.</summary>
    private static bool MayGrow(ReadOnlySpan<byte> command) => (CommandKind)command[0] is not (CommandKind.Delete or CommandKind.Extend or CommandKind.SequenceDelete or CommandKind.LockExtend or CommandKind.LockRelease);

    private void DropReads(OutcomeStatus status) => _reads.Drop(status, status == OutcomeStatus.NotLeader ? Core.LeaderToAsk.Value : 0);

    private void Answer(ProposalQueue.PendingReply reply, OutcomeStatus status, long number = 0)
    {
        if (reply.Sink is not null)
        {
            _output.Reply(reply.Sink, reply.Number, new Outcome(status, number: number));
        }
    }
}
