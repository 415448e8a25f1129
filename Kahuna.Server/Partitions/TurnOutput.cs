using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Frames;
using Kahuna.Client.Wire.Outcomes;
using Kahuna.Server.Partitions.States;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;

namespace Kahuna.Server.Partitions;

/// <summary>
/// What the partitions of a loop bring out in one turn, gathered so that one log batch, one frame per peer and one frame
/// per client serve them all. Owned by one loop; not thread-safe.
/// </summary>
internal sealed class TurnOutput
{
    private readonly PartitionLoop _owner;
    private readonly int _loop;
    private readonly int _standstillMs;
    private readonly ILogStore _store;
    private readonly ILogWriter _log;
    private readonly LogWatch _watch;
    private readonly IPartitionTrace? _trace;
    private readonly WorkBuffer _scratch = new(64 * 1024);
    private readonly PeerFrames _peers;
    private readonly Ring<Confirmation> _confirmations = new(64);
    private readonly Ring<HeldMessage> _held = new(64);
    private readonly Ring<HeldMessage> _toSelf = new(8);
    private readonly List<ReplySink> _sinks = [];
    private int _unnumberedConfirmations;
    private int _unnumberedHeld;
    private ulong _submitted;
    private ulong _persisted;
    private bool _hasTurned;

    public TurnOutput(LoopOptions options, PartitionLoop loop, LoopPorts ports, ILogWriter log)
    {
        _owner = loop;
        _loop = loop.Number;
        _standstillMs = options.StandstillMs;
        _store = ports.Log;
        _log = log;
        _watch = new LogWatch(options, loop.Number, ports.Report);
        _trace = ports.Trace;
        States = ports.Keeper;
        _peers = new PeerFrames(options, ports.Transport);
        Leadership = ports.Leadership;
    }

    /// <summary>Monotonic ms at the beginning of the turn.</summary>
    public long NowMs { get; private set; }

    /// <summary>Monotonic ms since when the loop has not stood still; what it was sent before may have waited for as long as it did.</summary>
    public long SteadySinceMs { get; private set; }

    /// <summary>What arrives now may have lain at this node while it stood still.</summary>
    public bool IsLate => SteadySinceMs > 0 && NowMs - SteadySinceMs < _standstillMs;

    /// <summary>Why writes are refused in this turn, or null.</summary>
    public string? RefuseWrites { get; private set; }

    public ILeadershipSink Leadership { get; }

    /// <summary>The state thread.</summary>
    public StateKeeper States { get; }

    public int LogBatchesPending => _log.Pending;

    /// <summary>Number of the last batch that was handed to the log; what a turn hands to it before it is submitted is in the next one.</summary>
    public ulong Submitted => _submitted;

    /// <summary>Everything up to this batch is on stable storage.</summary>
    public ulong PersistedThrough => _persisted;

    /// <inheritdoc cref="LogWatch.IsStalled"/>
    public bool IsLogStalled => _watch.IsStalled;

    /// <summary>The time until the first turn.</summary>
    public void Begin(long nowMs) => NowMs = nowMs;

    public void BeginTurn(long nowMs, bool isTick)
    {
        if (isTick)
        {
            _watch.Tick(_submitted, _persisted);
            _scratch.Tick();
        }

        // What lies between the beginning and the first turn is the loading of what is stored.
        if (_hasTurned && nowMs - NowMs > _standstillMs)
        {
            SteadySinceMs = nowMs;
        }

        _hasTurned = true;
        NowMs = nowMs;
        RefuseWrites = _store.RefuseWrites;
    }

    /// <summary>Partitions with work that was left for the next turn, so that others come in between; the loop clears the list.</summary>
    public List<Partition> Again { get; } = [];

    /// <summary>Gives the partitions with work that the turn before has left their turn in this one.</summary>
    public void MarkLeftOver()
    {
        foreach (Partition partition in Again)
        {
            _owner.MarkDirty(partition);
        }

        Again.Clear();
    }

    // ---- Log

    public void Persist(GroupId group, RaftCore core, LogIndex first, LogIndex last)
    {
        int count = (int)(last.Value - first.Value + 1);
        core.CopyEntries(first, count, _scratch.Bytes);
        _log.Append(group, first, count, _scratch.Bytes.Written);
        _scratch.Clear();
    }

    public void Persist(GroupId group, in HardState state) => _log.Save(group, state);

    /// <summary>As <see cref="Persist(GroupId, in HardState)"/>, for a partition whose entries are not stored: it is told when it is on stable storage.</summary>
    public void PersistAlone(Partition partition, GroupId group, in HardState state)
    {
        _log.Save(group, state);
        _confirmations.Add(new Confirmation(0, partition, default, default));
        _unnumberedConfirmations++;
    }

    /// <summary>The group's log begins anew after this entry.</summary>
    public void RestartLog(GroupId group, LogIndex index, Term term) => _log.Restart(group, index, term);

    /// <summary>Tells the partition once what it has just handed to the log is on stable storage.</summary>
    public void NotifyPersisted(Partition partition, LogIndex index, Term term)
    {
        _confirmations.Add(new Confirmation(0, partition, index, term));
        _unnumberedConfirmations++;
    }

    public void Fetch(GroupId group, in LogFetch fetch) => _log.Fetch(group, fetch.Follower, fetch.First, fetch.BytesMax);

    /// <summary>Hands the turn's records to the log as one batch. Messages that wait for nothing leave at once.</summary>
    public void SubmitLog()
    {
        ulong batch = _log.Submit();
        if (batch != 0)
        {
            _submitted = batch;
        }

        for (int i = _confirmations.Count - _unnumberedConfirmations; i < _confirmations.Count; i++)
        {
            _confirmations[i].Batch = _submitted;
        }

        for (int i = _held.Count - _unnumberedHeld; i < _held.Count; i++)
        {
            _held[i].Batch = _submitted;
        }

        _unnumberedConfirmations = 0;
        _unnumberedHeld = 0;
        ReleaseHeld();
    }

    /// <summary>The log holds everything up to <paramref name="batch"/>: confirms to the partitions and lets go what waited for it.</summary>
    public void Persisted(ulong batch, PartitionLoop loop)
    {
        if (batch > _persisted)
        {
            _persisted = batch;
        }

        while (_confirmations.Count > 0 && _confirmations[0].Batch != 0 && _confirmations[0].Batch <= _persisted)
        {
            Confirmation confirmation = _confirmations.Take();
            if (confirmation.Term.Value == 0)
            {
                loop.Saved(confirmation.Partition);
            }
            else
            {
                loop.Persisted(confirmation.Partition, confirmation.Index, confirmation.Term);
            }
        }

        ReleaseHeld();
    }

    // ---- Peers

    /// <summary>Queues a message that may leave only when everything persisted so far, and with this turn, is durable.</summary>
    public void SendAfterDurable(Partition partition, in RaftMessage message)
    {
        _held.Add(new HeldMessage { Batch = 0, Partition = partition, Message = message, Stamp = partition.Stamp });
        _unnumberedHeld++;
    }

    /// <summary>Queues a promise that rests on nothing that is not durable yet.</summary>
    public void SendDurable(Partition partition, in RaftMessage message)
    {
        if (_peers.For(message) is { } frame)
        {
            int at = PeerFrame.BeginMessage(frame, partition.Group, message, partition.Stamp);
            PeerFrame.EndMessage(frame, at);
        }
        else
        {
            _toSelf.Add(new HeldMessage { Partition = partition, Message = message, Stamp = partition.Stamp });
        }
    }

    /// <summary>Queues a message; the entries of an append come from the core's memory.</summary>
    public void Send(Partition partition, in RaftMessage message, RaftCore core)
    {
        if (_peers.For(message) is not { } frame)
        {
            return;
        }

        int at = PeerFrame.BeginMessage(frame, partition.Group, message, partition.Stamp);
        if (message.EntryCount > 0)
        {
            core.CopyEntries(message.Index.Next(), message.EntryCount, frame);
        }

        PeerFrame.EndMessage(frame, at);
        _peers.SendWhenLarge(message.To, frame);
    }

    /// <summary>Queues a message with entries that were read from storage.</summary>
    public void Send(Partition partition, in RaftMessage message, ReadOnlySpan<byte> entries)
    {
        if (_peers.For(message) is not { } frame)
        {
            return;
        }

        int at = PeerFrame.BeginMessage(frame, partition.Group, message, partition.Stamp);
        frame.Append(entries);
        PeerFrame.EndMessage(frame, at);
        _peers.SendWhenLarge(message.To, frame);
    }

    /// <summary>Steps the messages to ourselves that have become due. Between two Readys only: a step would change the one in hand.</summary>
    public void StepSelf(PartitionLoop loop)
    {
        while (_toSelf.Count > 0)
        {
            HeldMessage held = _toSelf.Take();
            if (held.Partition.MayPromise(held.Stamp))
            {
                loop.StepSelf(held.Partition, held.Message);
            }
        }
    }

    /// <summary>Sends one frame to each peer that has messages.</summary>
    public void SendPeers() => _peers.Send();

    /// <summary>The next peer to which a frame was lost since the last call.</summary>
    public bool TryTakeUnreachable(out NodeId peer) => _peers.TryTakeUnreachable(out peer);

    // ---- Replies

    /// <summary>Opens one reply in the sink's frame of this turn; the caller appends the outcome and calls <see cref="EndReply"/>.</summary>
    public ByteBuffer BeginReply(ReplySink sink, uint number, out int at)
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
        Frame.BeginReply(frame, number);
        return frame;
    }

    public void EndReply(ReplySink sink, ByteBuffer frame, int at)
    {
        Frame.EndReply(frame, at);
        sink.OpenCount[_loop]++;
        if (frame.Length >= Client.Wire.Limits.FrameBytesTarget)
        {
            sink.Open[_loop] = null;
            _sinks.Remove(sink);
            _trace?.Flush();
            sink.Deliver(frame, sink.OpenCount[_loop]);
        }
    }

    /// <summary>A read's answer of so many bytes may be made for the client now.</summary>
    public bool HasRoom(ReplySink sink, int answerBytes) => sink.HasRoomForRead(sink.Open[_loop]?.Length ?? 0, answerBytes);

    /// <summary>The sink tells the loop, once, when something has left.</summary>
    public void TellWhenLeft(ReplySink sink) => sink.TellWhenLeft(_owner);

    /// <summary>A rule is broken in the middle of an answer: of what was begun nothing may stay in the client's frame.</summary>
    public void GiveUpReply(ReplySink sink, uint number, ByteBuffer frame, int at)
    {
        frame.Length = at;
        ReplyError(sink, number, OutcomeStatus.Internal, "The partition has stopped on an internal error; see the node's log.");
    }

    /// <summary>As <see cref="EndReply"/>, for a read. False when the answer is larger than the client's room: it is taken back.</summary>
    public bool TryEndRead(ReplySink sink, ByteBuffer frame, int at)
    {
        if (!sink.HasRoomForRead(at, frame.Length - at))
        {
            frame.Length = at;
            return false;
        }

        EndReply(sink, frame, at);
        return true;
    }

    /// <summary>As <see cref="EndReply"/>, for a write, which is applied and cannot wait. False when the answer has a value larger than the client's room: it is taken back.</summary>
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

    public void Reply(ReplySink sink, uint number, scoped in Outcome outcome)
    {
        ByteBuffer frame = BeginReply(sink, number, out int at);
        outcome.Write(frame);
        EndReply(sink, frame, at);
    }

    public void ReplyError(ReplySink sink, uint number, OutcomeStatus status, string sentence)
    {
        ByteBuffer frame = BeginReply(sink, number, out int at);
        Outcome.WriteError(frame, status, sentence);
        EndReply(sink, frame, at);
    }

    /// <summary>Hands each client its frame.</summary>
    public void DeliverReplies()
    {
        _trace?.Flush();
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

    private void ReleaseHeld()
    {
        while (_held.Count > _unnumberedHeld && _held[0].Batch <= _persisted)
        {
            HeldMessage held = _held.Take();
            if (held.Partition.Failed || !held.Partition.MayPromise(held.Stamp))
            {
                continue;
            }

            if (_peers.For(held.Message) is { } frame)
            {
                int at = PeerFrame.BeginMessage(frame, held.Partition.Group, held.Message, held.Stamp);
                PeerFrame.EndMessage(frame, at);
            }
            else
            {
                _toSelf.Add(held);
            }
        }
    }
}
