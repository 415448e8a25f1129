using Kahuna.Client.Wire.Buffers;
using Kahuna.Server.Partitions.Ephemeral;
using Kahuna.Server.Partitions.States;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State.Meta;

namespace Kahuna.Server.Partitions;

/// <summary>
/// The owner of some of the node's partitions. Everybody else sends it messages through its inbox; one turn takes
/// everything that waits, for all its partitions. Turns never overlap, and run wherever the scheduler lets them.
/// </summary>
internal sealed class PartitionLoop : ILogSink
{
    /// <summary>Rounds of one turn, far above what the entries of one turn can need: a turn that goes on for ever would stop every group of the loop without a word.</summary>
    private const int RoundsMax = 100_000;

    private readonly LoopInbox _inbox;
    private readonly NodeId _self;
    private readonly LoopTurns _runner;
    private readonly TimeProvider _clock;
    private readonly TurnOutput _output;
    private readonly GroupLayout _layout;
    private readonly Partition?[] _partitions;
    private readonly List<Partition> _owned = [];
    private readonly List<Partition> _dirty = [];
    private readonly ILeadershipSink _leadership;
    private readonly PartitionGuard _guard;
    private int _ticksDue;
    private long _turns;
    private bool _draining;
    private bool _drained;
    private bool _anotherRound;

    public PartitionLoop(LoopOptions options, int number, LoopPorts ports, MetaBoard board)
    {
        Number = number;
        _self = options.Self;
        _runner = new LoopTurns(this, Turn, ports.Scheduler, ports.FatalErrors);
        _clock = ports.Clock;
        _leadership = ports.Leadership;
        _guard = new PartitionGuard(_leadership);
        _inbox = new LoopInbox(options.ClientInboxBytesMax, options.PeerInboxBytesMax);
        _output = new TurnOutput(options, this, ports, ports.Log.OpenWriter(this));
        _output.Begin(NowMs);
        _layout = ports.Layout(options);
        _partitions = new Partition?[_layout.Slots];
        for (int i = 0; i < _partitions.Length; i++)
        {
            if (_layout.LoopOf(i, options.Loops) == number)
            {
                Partition partition = _partitions[i] = new(i, options, ports, _output, board);
                _owned.Add(partition);
                _guard.StopUnlessLoaded(partition);
            }
        }
    }

    public int Number { get; }

    /// <summary>Partitions of this loop; for its owner, and for others only what they document.</summary>
    public IReadOnlyList<Partition> Owned => _owned;

    /// <summary>After <see cref="PostDrain"/>: everything accepted is answered and, where there is somebody else, leadership is handed over. Any thread.</summary>
    public bool IsDrained => Volatile.Read(ref _drained);

    /// <summary>After <see cref="PostClose"/>: nothing is taken any more. Any thread.</summary>
    public bool IsClosed => _inbox.IsClosed;

    /// <summary>Turns run so far; any thread.</summary>
    public long Turns => Volatile.Read(ref _turns);

    /// <summary>Monotonic ms of the node's clock.</summary>
    public long NowMs => (long)(_clock.GetTimestamp() * 1000.0 / _clock.TimestampFrequency);

    // ---- From outside, any thread

    /// <summary>Adds operations of a client. False when the inbox is full: nothing happened and the caller still holds the batch.</summary>
    public bool TryPost(ClientBatch batch)
    {
        if (!_inbox.TryAdd(new InboxItem { Kind = InboxKind.Client, Batch = batch }))
        {
            return false;
        }

        Signal(mayRunHere: true);
        return true;
    }

    /// <summary>Adds a peer's frame, which the loop takes over. A full inbox drops it, as a network would.</summary>
    public void PostPeer(NodeId from, ByteBuffer frame)
    {
        if (!_inbox.TryAdd(new InboxItem { Kind = InboxKind.Peer, Node = from, Buffer = frame }))
        {
            frame.Return();
            return;
        }

        Signal(mayRunHere: true);
    }

    public void PostLinkDown(NodeId peer) => Post(new InboxItem { Kind = InboxKind.LinkDown, Node = peer }, mayRunHere: false);

    /// <summary>A tick of the node's clock. Ticks that the loop could not take in time count as one: after a pause of the process no election starts by itself.</summary>
    public void PostTick()
    {
        Volatile.Write(ref _ticksDue, 1);
        Signal(mayRunHere: true);
    }

    /// <summary>A member came back without what it had.</summary>
    public void PostMemberReplaced(NodeId member) => Post(new InboxItem { Kind = InboxKind.MemberReplaced, Node = member }, mayRunHere: false);

    public void PostAllowVoting() => Post(new InboxItem { Kind = InboxKind.AllowVoting }, mayRunHere: false);

    /// <summary>The meta group's records have changed.</summary>
    public void PostMeta(MetaView view) => Post(new InboxItem { Kind = InboxKind.Meta, View = view }, mayRunHere: false);

    /// <summary>The meta group, which this loop owns, is to record a command; takes over the buffer.</summary>
    public void PostMetaAsk(ByteBuffer command) => Post(new InboxItem { Kind = InboxKind.MetaAsk, Buffer = command }, mayRunHere: false);

    /// <summary>What the state thread asks or tells. False when the loop takes nothing any more.</summary>
    public bool PostState(StateCall call)
    {
        if (!_inbox.TryAdd(new InboxItem { Kind = InboxKind.State, Call = call }))
        {
            return false;
        }

        Signal(mayRunHere: false);
        return true;
    }

    /// <summary>Answers of a client have left, or the client has, and this loop wanted to hear of it.</summary>
    public void PostRoom(ReplySink sink) => Post(new InboxItem { Kind = InboxKind.Room, Sink = sink }, mayRunHere: false);

    /// <summary>Takes no new operations and hands leadership over.</summary>
    public void PostDrain() => Post(new InboxItem { Kind = InboxKind.Drain }, mayRunHere: false);

    /// <summary>Answers what is left and takes nothing any more.</summary>
    public void PostClose() => Post(new InboxItem { Kind = InboxKind.Close }, mayRunHere: false);

    void ILogSink.Persisted(ulong batch) => Post(new InboxItem { Kind = InboxKind.Persisted, Number = batch }, mayRunHere: true);

    void ILogSink.Fetched(GroupId group, NodeId follower, LogIndex first, ByteBuffer entries) =>
        Post(new InboxItem { Kind = InboxKind.Fetched, Group = group, Node = follower, Number = first.Value, Buffer = entries }, mayRunHere: false);

    void ILogSink.Failed(Exception error) => _leadership.StorageFailed(error);

    private void Post(in InboxItem item, bool mayRunHere)
    {
        if (_inbox.TryAdd(item))
        {
            Signal(mayRunHere);
            return;
        }

        item.Buffer?.Return();
    }

    private void Signal(bool mayRunHere) => _runner.Signal(mayRunHere);

    // ---- The turns

    /// <summary>Runs turns until nothing waits, or <paramref name="turnsMax"/> of them; then asks the scheduler for another thread. Called by the scheduler only.</summary>
    public void RunTurns(int turnsMax) => _runner.Run(turnsMax);

    /// <summary>The partition has work in this turn.</summary>
    internal void MarkDirty(Partition partition)
    {
        if (!partition.Dirty && !partition.Failed)
        {
            partition.Dirty = true;
            _dirty.Add(partition);
        }
    }

    /// <summary>A message that the node sends to itself.</summary>
    internal void StepSelf(Partition partition, in RaftMessage message)
    {
        _guard.Step(partition, message, partition.Stamp, default);
        MarkDirty(partition);
    }

    /// <summary>What a partition had stored besides entries is on stable storage now.</summary>
    internal void Saved(Partition partition)
    {
        _guard.Do(partition, static (partition, _) => partition.Saved(), _self);
        MarkDirty(partition);
    }

    /// <summary>What of a partition's log is on stable storage now.</summary>
    internal void Persisted(Partition partition, LogIndex index, Term term)
    {
        _guard.Do(partition, static (partition, last) => partition.Persisted(last.Index, last.Term), (Index: index, Term: term));
        MarkDirty(partition);
    }

    private void Turn()
    {
        Volatile.Write(ref _turns, _turns + 1);

        // The time is later than every call that the turn answers, also after a pause right here: times to live must not end early.
        Span<InboxItem> items = _inbox.TakeAll();
        _output.BeginTurn(NowMs, isTick: Volatile.Read(ref _ticksDue) != 0);
        if (Interlocked.Exchange(ref _ticksDue, 0) != 0)
        {
            GuardAll(static (partition, _) => partition.Tick(), _self);
        }

        _output.MarkLeftOver();
        foreach (ref InboxItem item in items)
        {
            Dispatch(ref item);
            item = default;
        }

        _output.StepSelf(this);
        for (int round = 0; _dirty.Count > 0; round++)
        {
            if (round == RoundsMax)
            {
                throw new InvalidOperationException($"A turn has not ended after {RoundsMax:N0} rounds; still due: {string.Join(", ", _dirty.Select(static partition => partition.Group))}.");
            }

            for (int i = 0; i < _dirty.Count; i++)
            {
                _guard.Do(_dirty[i], static (partition, _) => partition.Propose(), _self);
            }

            _output.SubmitLog();
            _output.SendPeers();
            int kept = 0;
            for (int i = 0; i < _dirty.Count; i++)
            {
                Partition partition = _dirty[i];
                _anotherRound = false;
                _guard.Do(partition, static (partition, loop) => loop._anotherRound = partition.Finish(), this);
                if (_anotherRound)
                {
                    _dirty[kept++] = partition;
                }
                else
                {
                    partition.Dirty = false;
                }
            }

            _dirty.RemoveRange(kept, _dirty.Count - kept);
            _output.DeliverReplies();
            while (_output.TryTakeUnreachable(out NodeId peer))
            {
                ReportUnreachable(peer);
            }

            _output.StepSelf(this);
        }

        EndTurn();
    }

    /// <summary>Sends what is left, and sees to the next turn.</summary>
    private void EndTurn()
    {
        _output.SendPeers();
        _output.DeliverReplies();
        if (_output.Again.Count > 0)
        {
            _runner.RunAgain();
        }

        if (_draining)
        {
            Volatile.Write(ref _drained, _owned.TrueForAll(static partition => partition.IsDrained));
        }
    }

    private void Dispatch(ref InboxItem item)
    {
        switch (item.Kind)
        {
            case InboxKind.Client:
                AcceptBatch(item.Batch!);
                break;
            case InboxKind.Peer:
                StepFrame(item.Node, item.Buffer!);
                break;
            case InboxKind.Persisted:
                _output.Persisted(item.Number, this);
                MarkQueued();
                break;
            case InboxKind.Fetched:
                Guard(item.Group, static (partition, read) => partition.Fetched(read.Node, read.First, read.Buffer.Written), (item.Node, First: new LogIndex(item.Number), Buffer: item.Buffer!));
                item.Buffer!.Return();
                break;
            case InboxKind.LinkDown:
                ReportUnreachable(item.Node);
                break;
            case InboxKind.MemberReplaced:
                GuardAll(static (partition, node) => partition.Forget(node), item.Node);
                break;
            case InboxKind.AllowVoting:
                GuardAll(static (partition, _) => partition.AllowVoting(), item.Node);
                break;
            case InboxKind.State:
                if (Find(item.Call!.Group) is { } called)
                {
                    _guard.Ask(called, static (partition, call) => partition.Take(call), item.Call);
                    MarkDirty(called);
                }

                break;
            case InboxKind.Meta:
                GuardAll(static (partition, view) => partition.Learn(view), item.View!);
                break;
            case InboxKind.MetaAsk:
                Guard(GroupId.Meta, static (partition, command) => partition.Record(command.Written), item.Buffer!);
                item.Buffer!.Return();
                break;
            case InboxKind.Room:
                GuardAll(static (partition, sink) => partition.Left(sink), item.Sink!);
                break;
            case InboxKind.Drain:
                _draining = true;
                GuardAll(static (partition, _) => partition.Drain(), item.Node);
                break;
            case InboxKind.Close:
                _inbox.Close();
                _owned.ForEach(static partition => partition.Close());
                break;
        }
    }

    private void AcceptBatch(ClientBatch batch)
    {
        for (int i = 0; i < batch.Operations.Length; i++)
        {
            if (_partitions[batch.Operations[i].Slot] is { } partition)
            {
                _guard.Accept(partition, batch, i);
                MarkDirty(partition);
            }
        }

        batch.Release();
    }

    private void StepFrame(NodeId from, ByteBuffer frame)
    {
        ReadOnlySpan<byte> rest = frame.Written;
        while (PeerFrame.TryRead(ref rest, out GroupId group, out RaftMessage message, out MessageStamp stamp, out ReadOnlySpan<byte> entries))
        {
            if (Find(group) is { } partition)
            {
                message.From = from;
                message.To = _self;
                _guard.Step(partition, message, stamp, entries);
                MarkDirty(partition);
            }
        }

        frame.Return();
    }

    private Partition? Find(GroupId group) => _layout.SlotOf(group) is var slot and >= 0 ? _partitions[slot] : null;

    private void MarkQueued()
    {
        foreach (Partition partition in _owned)
        {
            if (partition.HasQueued)
            {
                MarkDirty(partition);
            }
        }
    }

    private void ReportUnreachable(NodeId peer) => GuardAll(static (partition, peer) => partition.ReportUnreachable(peer), peer);

    /// <summary>Does something with the partition of a group, if it is here.</summary>
    private void Guard<T>(GroupId group, Action<Partition, T> action, T argument)
    {
        if (Find(group) is { } partition)
        {
            _guard.Do(partition, action, argument);
            MarkDirty(partition);
        }
    }

    /// <summary>Does something with each partition that has not stopped; its turn comes in any case.</summary>
    private void GuardAll<T>(Action<Partition, T> action, T argument)
    {
        foreach (Partition partition in _owned)
        {
            _guard.Do(partition, action, argument);
            MarkDirty(partition);
        }
    }
}
