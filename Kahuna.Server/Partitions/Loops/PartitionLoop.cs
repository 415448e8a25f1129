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
    private readonly PageTurns _pages;
    private readonly ILeadershipSink _leadership;
    private readonly GroupGuard _guard;
    private readonly LoopAlarm _alarm;
    private int _ticksDue;
    private ulong _ticks;
    private long _turns;
    private bool _drained;
    private GroupWork _left;

    public PartitionLoop(LoopOptions options, int number, LoopPorts ports, MetaPublisher meta)
    {
        Number = number;
        _runner = new LoopTurns(this, Turn, ports);
        _clock = ports.Clock;
        _alarm = new LoopAlarm(ports.Scheduler, () => Signal(mayRunInline: false));
        _leadership = ports.Leadership;
        _guard = new GroupGuard(_leadership);
        _inbox = new LoopInbox(options.ClientInboxBytesMax, options.PeerInboxBytesMax);
        _effects = new TurnEffects(options, this, this, ports, Now);
        _groups = new LoopGroups(ports.Layout(options), _guard);
        _pages = new PageTurns(ports.Layout(options).Count, _guard);
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
    public NodeTime Now => _clock.Now();

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
    public bool PostCheckpoint(CheckpointRequest request) =>
        TryPost(new InboxItem { Kind = InboxKind.Checkpoint, Request = request });

    /// <summary>Somebody looks at a group. False when the loop takes nothing further.</summary>
    public bool TryPostInspection(int groupIndex, Action<Group?> look) =>
        TryPost(new InboxItem { Kind = InboxKind.Inspect, Number = (ulong)groupIndex, Look = look });

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

    /// <summary>Adds an item that holds no buffer. False when the loop takes nothing further.</summary>
    internal bool TryPost(in InboxItem item)
    {
        bool isTaken = _inbox.TryAdd(item);
        if (isTaken)
        {
            Signal(mayRunInline: false);
        }

        return isTaken;
    }

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
        _effects.BeginTurn(Now, isTick: Volatile.Read(ref _ticksDue) != 0);
        if (Interlocked.Exchange(ref _ticksDue, 0) != 0)
        {
            _ticks++;
            _groups.All(static (group, loop) => group.Tick(loop._ticks), this);
        }

        foreach (Group group in _leftOver)
        {
            _groups.MarkDirty(group);
        }

        _leftOver.Clear();
        if (_alarm.IsDue)
        {
            _alarm.TakeDue(_groups);
        }

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

            if ((_left & GroupWork.Pages) != 0)
            {
                _pages.Add(group);
            }

            if ((_left & GroupWork.Later) != 0)
            {
                _alarm.Set(group);
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
        if (_pages.HasMore)
        {
            _pages.Serve();
            _effects.DeliverReplies();
        }

        if (_leftOver.Count > 0 || _pages.HasMore)
        {
            _runner.RunAgain();
        }

        if (_intake.IsDraining)
        {
            Volatile.Write(ref _drained, _groups.AreDrained);
        }
    }

}

/// <summary>
/// Runs the turns of one loop: whether the loop is idle, running or due again, and what happens when a turn throws. Any
/// thread may signal; turns never overlap. After an exception that left a turn no turn follows.
/// </summary>
/// <param name="loop">The loop whose turns they are.</param>
/// <param name="turn">One turn.</param>
/// <param name="ports">
/// The scheduler, which gives the threads, and who is told of an exception that leaves a turn.
/// </param>
internal sealed class LoopTurns(PartitionLoop loop, Action turn, LoopPorts ports)
{
    private const int Idle = 0;
    private const int Running = 1;
    private const int Signalled = 2;

    private int _state;
    private bool _dead;

    /// <summary>
    /// There is something to do. Never throws because of what a turn does, so a thread that runs turns inline is not
    /// harmed.
    /// </summary>
    /// <param name="mayRunInline">The calling thread may run the turn.</param>
    public void Signal(bool mayRunInline)
    {
        // A cheap look first: while a signal is pending, another one adds nothing.
        if (Volatile.Read(ref _state) != Signalled && Interlocked.Exchange(ref _state, Signalled) == Idle)
        {
            Schedule(mayRunInline);
        }
    }

    /// <summary>For the turn that runs: another one follows it, in which everybody else has a share.</summary>
    public void RunAgain() => Volatile.Write(ref _state, Signalled);

    /// <summary>
    /// Runs turns until nothing waits, or <paramref name="turnsMax"/> of them; then asks the scheduler for another
    /// thread.
    /// </summary>
    public void Run(int turnsMax)
    {
        if (Volatile.Read(ref _dead))
        {
            return;
        }

        for (int i = 0; i < turnsMax; i++)
        {
            Volatile.Write(ref _state, Running);
            Interlocked.MemoryBarrier();
            try
            {
                turn();
            }
            catch (Exception error)
            {
                // Which part of the turn was carried out is not known: the log, the peers and the clients may have been
                // told different things.
                Die($"a turn of loop {loop.Number}", error);
                return;
            }

            if (Interlocked.CompareExchange(ref _state, Idle, Running) == Running)
            {
                return;
            }
        }

        Schedule(mayRunInline: false);
    }

    private void Schedule(bool mayRunInline)
    {
        try
        {
            ports.Scheduler.Schedule(loop, mayRunInline);
        }
        catch (Exception error) when (!Volatile.Read(ref _dead))
        {
            // Without a thread the loop would wait for ever, since everybody else believes that a turn is coming.
            Die($"scheduling loop {loop.Number}", error);
        }
    }

    private void Die(string where, Exception error)
    {
        Volatile.Write(ref _dead, true);
        ports.FatalErrors.Raise(where, error);
    }
}

/// <summary>
/// What the groups of a loop bring out in one turn, gathered so that one log batch, one frame per peer and one frame
/// per client serve them all. Owned by one loop; not thread-safe.
/// </summary>
internal sealed class TurnEffects
{
    private readonly TurnClock _clock;
    private readonly LogWatch _logWatch;
    private readonly LogBatch _log;
    private readonly PeerMessages _peers;
    private readonly ReplyFrames _replies;

    /// <param name="options">Sizes and times.</param>
    /// <param name="loop">The loop; it hears when answers of a client have left.</param>
    /// <param name="sink">The loop; it hears from the log.</param>
    /// <param name="ports">What the loop reaches the world through.</param>
    /// <param name="now">The time now.</param>
    public TurnEffects(LoopOptions options, IRoomListener loop, ILogSink sink, LoopPorts ports, NodeTime now)
    {
        ILogWriter log = ports.Log.OpenWriter(sink);
        _clock = new TurnClock(options.PauseMs, now);
        _logWatch = new LogWatch(options, loop.Number, ports, log);
        _log = new LogBatch(log);
        _peers = new PeerMessages(options, ports.Transport);
        _replies = new ReplyFrames(loop, ports.Trace, ports.Times?[loop.Number]);
        Parts = new TurnParts(_clock, _logWatch, _log, _peers, _replies);
    }

    /// <summary>The effects, each by its job, as the groups use them.</summary>
    public TurnParts Parts { get; }

    /// <summary>A turn begins.</summary>
    public void BeginTurn(NodeTime now, bool isTick)
    {
        if (isTick)
        {
            _logWatch.Tick(_log.Submitted, _log.Persisted);
        }

        _clock.BeginTurn(now);
        _logWatch.BeginTurn();
    }

    /// <summary>
    /// Submits the round's log batch, releases the promises that wait for nothing, and sends the peers' frames.
    /// </summary>
    public void Submit()
    {
        _peers.WaitFor(_log.Submit());
        _peers.ReleaseThrough(_log.Persisted);
        _peers.SendFrames();
        _replies.BeginAnswers();
    }

    /// <summary>
    /// The log holds everything up to <paramref name="batch"/>. The loop now tells the groups
    /// (<see cref="TryTakeConfirmed"/>), and then has what waited for the batch released
    /// (<see cref="ReleasePromises"/>): a group that stops when it is told must not promise anything.
    /// </summary>
    public void MarkPersisted(ulong batch) => _log.MarkPersisted(batch);

    /// <inheritdoc cref="LogBatch.TryTakeConfirmed"/>
    public bool TryTakeConfirmed(out Confirmation confirmation) => _log.TryTakeConfirmed(out confirmation);

    /// <summary>Releases the promises that waited for what is on stable storage now.</summary>
    public void ReleasePromises() => _peers.ReleaseThrough(_log.Persisted);

    /// <inheritdoc cref="PeerMessages.TryTakeOwn"/>
    public bool TryTakeOwn(out HeldMessage message) => _peers.TryTakeOwn(out message);

    /// <inheritdoc cref="PeerMessages.TryTakeUnreachable"/>
    public bool TryTakeUnreachable(out NodeId peer) => _peers.TryTakeUnreachable(out peer);

    /// <summary>Hands each client its frame.</summary>
    public void DeliverReplies() => _replies.Deliver();

    /// <summary>The turn ends: what is left leaves.</summary>
    public void EndTurn()
    {
        _peers.SendFrames();
        _replies.Deliver();
    }
}

/// <summary>
/// The groups of a loop, and which of them have work in this turn. A group that breaks a rule stops, and only it
/// (<see cref="GroupGuard"/>). Owned by one loop; not thread-safe.
/// </summary>
internal sealed class LoopGroups
{
    private readonly GroupLayout _layout;
    private readonly GroupGuard _guard;
    private readonly Group?[] _byIndex;
    private readonly List<Group> _owned = [];

    /// <param name="layout">Which groups the node has.</param>
    /// <param name="guard">Stops a group that breaks a rule.</param>
    public LoopGroups(GroupLayout layout, GroupGuard guard)
    {
        _layout = layout;
        _guard = guard;
        _byIndex = new Group?[layout.Count];
    }

    /// <summary>The groups, by index.</summary>
    public IReadOnlyList<Group> Owned => _owned;

    /// <summary>Groups with work in this turn, each once.</summary>
    public List<Group> Dirty { get; } = [];

    /// <summary>Every group has answered what it accepted and handed leadership over.</summary>
    public bool AreDrained => _owned.TrueForAll(static group => group.IsDrained);

    /// <summary>Builds and starts the groups of the loop with this number.</summary>
    public void Build(int loop, LoopOptions options, GroupBuilder builder)
    {
        for (int index = 0; index < _layout.Count; index++)
        {
            if (_layout.LoopOf(index, options.Loops) == loop)
            {
                Group group = builder.Build(index);
                InvariantException.Require(_byIndex[index] is null && group.Index == index, "an index has one group");
                _byIndex[index] = group;
                _owned.Add(group);
                _guard.Start(group);
            }
        }
    }

    /// <summary>Answers everything that still waits.</summary>
    public void Close() => _owned.ForEach(static group => group.Requests.Close());

    /// <summary>The group at an index, if it is here.</summary>
    public Group? At(int index) => _byIndex[index];

    /// <summary>The group, if it is here.</summary>
    public Group? Find(GroupId id) => _layout.IndexOf(id) is var index and >= 0 ? _byIndex[index] : null;

    /// <summary>The group has work in this turn.</summary>
    public void MarkDirty(Group group)
    {
        if (!group.Dirty && !group.Failed)
        {
            group.Dirty = true;
            Dirty.Add(group);
        }
    }

    /// <summary>Groups whose proposals wait have work in this turn.</summary>
    public void MarkQueued()
    {
        foreach (Group group in _owned)
        {
            if (group.Requests.HasQueued)
            {
                MarkDirty(group);
            }
        }
    }

    /// <summary>Does something with a group, if it is here.</summary>
    public void Do<T>(GroupId id, Action<Group, T> action, T argument)
    {
        if (Find(id) is { } group)
        {
            Do(group, action, argument);
        }
    }

    /// <summary>Does something with a group that has not stopped; its turn comes in any case.</summary>
    public void Do<T>(Group group, Action<Group, T> action, T argument)
    {
        _guard.Do(group, action, argument);
        MarkDirty(group);
    }

    /// <summary>Does something with each group that has not stopped; its turn comes in any case.</summary>
    public void All<T>(Action<Group, T> action, T argument)
    {
        foreach (Group group in _owned)
        {
            Do(group, action, argument);
        }
    }
}
