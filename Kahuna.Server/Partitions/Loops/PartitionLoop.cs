using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Meta;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Partitions.Loops;

/// <summary>
/// The owner of some of the node's partitions. Everybody else sends it messages through its inbox; one turn takes
/// everything that waits, for all its partitions. Turns never overlap, and run wherever the scheduler lets them.
/// </summary>
internal sealed class PartitionLoop : ILogSink, ITurns, IRoomListener, IMetaListener
{
    /// <summary>
    /// Rounds of one turn, far above what the entries of one turn can need: a turn that goes on for ever would stop
    /// every group of the loop without a word.
    /// </summary>
    private const int RoundsMax = 100_000;

    private readonly LoopInbox _inbox;
    private readonly LoopTurns _runner;
    private readonly TimeProvider _clock;
    private readonly TurnEffects _effects;
    private readonly LoopGroups _groups;
    private readonly LoopIntake _intake;
    private readonly List<Group> _leftOver = [];
    private readonly ILeadershipSink _leadership;
    private readonly GroupGuard _guard;
    private int _ticksDue;
    private long _turns;
    private bool _drained;
    private GroupWork _left;

    public PartitionLoop(LoopOptions options, int number, LoopPorts ports, MetaPublisher meta)
    {
        Number = number;
        _runner = new LoopTurns(this, Turn, ports);
        _clock = ports.Clock;
        _leadership = ports.Leadership;
        _guard = new GroupGuard(_leadership);
        _inbox = new LoopInbox(options.ClientInboxBytesMax, options.PeerInboxBytesMax);
        _effects = new TurnEffects(options, this, this, ports, NowMs);
        _groups = new LoopGroups(ports.Layout(options), _guard);
        _intake = new LoopIntake(options.Self, _inbox, _groups, _guard, _effects);
        _groups.Build(number, options, new GroupBuilder(options, ports, _effects.Parts, meta));
    }

    public int Number { get; }

    /// <summary>Groups of this loop; for its owner, and for others only what they document.</summary>
    public IReadOnlyList<Group> Owned => _groups.Owned;

    /// <summary>Takes in what is posted. For tests while no turn runs.</summary>
    internal LoopIntake Intake => _intake;

    /// <summary>
    /// After <see cref="PostDrain"/>: everything accepted is answered and, where there is somebody else, leadership is
    /// handed over. Any thread.
    /// </summary>
    public bool IsDrained => Volatile.Read(ref _drained);

    /// <summary>After <see cref="PostClose"/>: nothing further is taken. Any thread.</summary>
    public bool IsClosed => _inbox.IsClosed;

    /// <summary>Turns run so far; any thread.</summary>
    public long Turns => Volatile.Read(ref _turns);

    /// <summary>Monotonic ms of the node's clock.</summary>
    public long NowMs => (long)(_clock.GetTimestamp() * 1000.0 / _clock.TimestampFrequency);

    // ---- From outside, any thread

    /// <summary>
    /// Adds operations of a client. False when the inbox is full: nothing happened and the caller still holds the
    /// batch.
    /// </summary>
    public bool TryPost(ClientBatch batch)
    {
        if (!_inbox.TryAdd(new InboxItem { Kind = InboxKind.Client, Batch = batch }))
        {
            return false;
        }

        Signal(mayRunInline: true);
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

        Signal(mayRunInline: true);
    }

    public void PostLinkDown(NodeId peer) =>
        Post(new InboxItem { Kind = InboxKind.LinkDown, Node = peer }, mayRunInline: false);

    /// <summary>
    /// A tick of the node's clock. Ticks that the loop could not take in time count as one: after a pause of the
    /// process no election starts by itself.
    /// </summary>
    public void PostTick()
    {
        Volatile.Write(ref _ticksDue, 1);
        Signal(mayRunInline: true);
    }

    /// <summary>A member came back without what it had.</summary>
    public void PostMemberReplaced(NodeId member) =>
        Post(new InboxItem { Kind = InboxKind.MemberReplaced, Node = member }, mayRunInline: false);

    public void PostAllowVoting() => Post(new InboxItem { Kind = InboxKind.AllowVoting }, mayRunInline: false);

    /// <summary>The meta group's records have changed.</summary>
    public void PostMeta(MetaView view) =>
        Post(new InboxItem { Kind = InboxKind.Meta, View = view }, mayRunInline: false);

    /// <summary>The meta group, which this loop owns, is to record a command; takes over the buffer.</summary>
    public void PostMetaAsk(ByteBuffer command) =>
        Post(new InboxItem { Kind = InboxKind.MetaAsk, Buffer = command }, mayRunInline: false);

    /// <summary>What the checkpoint service asks or tells. False when the loop takes nothing further.</summary>
    public bool PostCheckpoint(CheckpointRequest request)
    {
        if (!_inbox.TryAdd(new InboxItem { Kind = InboxKind.Checkpoint, Request = request }))
        {
            return false;
        }

        Signal(mayRunInline: false);
        return true;
    }

    /// <summary>Answers of a client have left, or the client has, and this loop wanted to hear of it.</summary>
    public void PostRoom(ReplySink sink) =>
        Post(new InboxItem { Kind = InboxKind.Room, Sink = sink }, mayRunInline: false);

    /// <summary>Takes no new operations and hands leadership over.</summary>
    public void PostDrain() => Post(new InboxItem { Kind = InboxKind.Drain }, mayRunInline: false);

    /// <summary>Answers what is left and takes nothing further.</summary>
    public void PostClose() => Post(new InboxItem { Kind = InboxKind.Close }, mayRunInline: false);

    void ILogSink.Persisted(ulong batch) =>
        Post(new InboxItem { Kind = InboxKind.Persisted, Number = batch }, mayRunInline: true);

    void ILogSink.Fetched(GroupId group, NodeId follower, LogIndex first, ByteBuffer entries) =>
        Post(new InboxItem
        {
            Kind = InboxKind.Fetched,
            Group = group,
            Node = follower,
            Number = first.Value,
            Buffer = entries
        }, mayRunInline: false);

    void ILogSink.Failed(Exception error) => _leadership.StorageFailed(error);

    private void Post(in InboxItem item, bool mayRunInline)
    {
        if (_inbox.TryAdd(item))
        {
            Signal(mayRunInline);
            return;
        }

        item.Buffer?.Return();
    }

    private void Signal(bool mayRunInline) => _runner.Signal(mayRunInline);

    // ---- The turns

    /// <summary>
    /// Runs turns until nothing waits, or <paramref name="turnsMax"/> of them; then asks the scheduler for another
    /// thread. Called by the scheduler only.
    /// </summary>
    public void RunTurns(int turnsMax) => _runner.Run(turnsMax);

    private void Turn()
    {
        Volatile.Write(ref _turns, _turns + 1);

        // The time is later than every call that the turn answers, also after a pause right here: times to live must
        // not end early.
        Span<InboxItem> items = _inbox.TakeAll();
        _effects.BeginTurn(NowMs, isTick: Volatile.Read(ref _ticksDue) != 0);
        if (Interlocked.Exchange(ref _ticksDue, 0) != 0)
        {
            _groups.All(static (group, _) => group.Tick(), this);
        }

        foreach (Group group in _leftOver)
        {
            _groups.MarkDirty(group);
        }

        _leftOver.Clear();
        foreach (ref InboxItem item in items)
        {
            _intake.Take(ref item);
            item = default;
        }

        _intake.StepOwn();
        for (int round = 0; _groups.Dirty.Count > 0; round++)
        {
            if (round == RoundsMax)
            {
                throw new InvalidOperationException(
                    $"A turn has not ended after {RoundsMax:N0} rounds; still due: "
                        + $"{string.Join(", ", _groups.Dirty.Select(static group => group.Id))}.");
            }

            Round();
        }

        EndTurn();
    }

    /// <summary>
    /// One round of a turn: all groups with work share one log batch, one frame per peer and one per client.
    /// </summary>
    private void Round()
    {
        List<Group> dirty = _groups.Dirty;
        for (int i = 0; i < dirty.Count; i++)
        {
            _guard.Do(dirty[i], static (group, _) => group.Propose(), this);
        }

        _effects.Submit();
        int kept = 0;
        for (int i = 0; i < dirty.Count; i++)
        {
            Group group = dirty[i];
            _left = GroupWork.None;
            _guard.Do(group, static (group, loop) => loop._left = group.Finish(), this);
            if ((_left & GroupWork.Turn) != 0)
            {
                _leftOver.Add(group);
            }

            if ((_left & GroupWork.Round) != 0)
            {
                dirty[kept++] = group;
            }
            else
            {
                group.Dirty = false;
            }
        }

        dirty.RemoveRange(kept, dirty.Count - kept);
        _effects.DeliverReplies();
        while (_effects.TryTakeUnreachable(out NodeId peer))
        {
            _intake.ReportUnreachable(peer);
        }

        _intake.StepOwn();
    }

    /// <summary>Sends what is left, and sees to the next turn.</summary>
    private void EndTurn()
    {
        _effects.EndTurn();
        if (_leftOver.Count > 0)
        {
            _runner.RunAgain();
        }

        if (_intake.IsDraining)
        {
            Volatile.Write(ref _drained, _groups.AreDrained);
        }
    }

}
