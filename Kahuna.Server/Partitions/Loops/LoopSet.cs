using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State.Meta;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Partitions.Loops;

/// <summary>All loops of a node: spreads what comes in over them. Immutable after construction; any thread.</summary>
internal sealed class LoopSet : IPeerReceiver, ICheckpointLoops
{
    private readonly ICheckpointInbox _checkpoints;
    private readonly LoopPorts _ports;
    private readonly PartitionLoop[] _loops;
    private readonly Group[] _groups;
    private readonly MetaPublisher _meta = new();

    public LoopSet(LoopOptions options, LoopPorts ports)
    {
        _checkpoints = ports.Checkpoints;
        _ports = ports;
        _loops = new PartitionLoop[options.Loops];
        Layout = ports.Layout(options);
        for (int i = 0; i < _loops.Length; i++)
        {
            _loops[i] = new PartitionLoop(options, i, ports, _meta);
        }

        _groups = [.. _loops.SelectMany(static loop => loop.Owned).OrderBy(static group => group.Index)];
        _meta.Attach(_loops);
    }

    public GroupLayout Layout { get; }

    /// <summary>The cluster's feature level, as far as this node knows.</summary>
    public FeatureLevel FeatureLevel => _meta.Latest.FeatureLevel;

    public ReadOnlySpan<PartitionLoop> Loops => _loops;

    /// <summary>Monotonic ms, as the loops count waiting times.</summary>
    public NodeTime Now => _loops[0].Now;

    /// <summary>The present moment, as <see cref="OperationTimes"/> counts.</summary>
    public uint Stamp => OperationTimes.Stamp(_ports.Clock);

    /// <summary>Answers that no loop has counted: to requests that were refused before they reached one.</summary>
    public Refusals Refusals { get; } = new();

    /// <summary>Bytes that the data of each durability takes up in memory, as of the latest ticks.</summary>
    public (long Persistent, long Ephemeral) MemoryBytes => (_ports.PersistentMemory.Bytes, _ports.Memory.Bytes);

    /// <summary>Keys and bytes that an account uses in all groups, as far as this node has applied them.</summary>
    public (long Keys, long Bytes) UsageOf(ushort account)
    {
        long keys = 0;
        long bytes = 0;
        foreach (Group group in _groups)
        {
            if (group.Metrics.Accounts is { } accounts)
            {
                keys += accounts.Keys(account);
                bytes += accounts.Bytes(account);
            }
        }

        return (keys, bytes);
    }

    /// <summary>What this node has of the group at an index.</summary>
    public Group Group(int index) => _groups[index];

    /// <summary>
    /// Hands a batch, which it takes over, to the loops it concerns. What finds no room is answered with Busy: it did
    /// not happen.
    /// </summary>
    public void Post(ClientBatch batch)
    {
        if (_loops.Length == 1)
        {
            if (!_loops[0].TryPost(batch))
            {
                Refuse(batch, 0);
                batch.Release();
            }

            return;
        }

        ulong concerned = 0;
        foreach (ref readonly ClientOperation operation in batch.Operations)
        {
            concerned |= 1UL << LoopOf(operation.GroupIndex);
        }

        batch.Hold(_loops.Length);
        for (int i = 0; i < _loops.Length; i++)
        {
            if ((concerned & (1UL << i)) == 0)
            {
                batch.Release();
            }
            else if (!_loops[i].TryPost(batch))
            {
                Refuse(batch, i);
                batch.Release();
            }
        }

        batch.Release();
    }

    /// <summary>What the meta group has recorded, as far as this node knows.</summary>
    public MetaView Meta => _meta.Latest;

    /// <summary>Asks the meta group to record a command. It may be lost: ask again until the records show it.</summary>
    public void AskMeta(MetaCommand command) => _meta.Ask(command);

    /// <summary>
    /// Every loop has answered what it accepted and, where there is another node, handed leadership over; see
    /// <see cref="Drain"/>.
    /// </summary>
    public bool IsDrained => Array.TrueForAll(_loops, static loop => loop.IsDrained);

    /// <summary>The loop that owns a group.</summary>
    public PartitionLoop OwnerOf(GroupId group) => _loops[LoopOf(Layout.IndexOf(group))];

    /// <summary>Takes no new operations and hands leadership over.</summary>
    public void Drain() => Array.ForEach(_loops, static loop => loop.PostDrain());

    /// <summary>Answers what is left and takes nothing further.</summary>
    public void Close() => Array.ForEach(_loops, static loop => loop.PostClose());

    /// <summary>
    /// Has a group looked at on its loop, between other work. The look reads a bounded part and throws nothing. False:
    /// the loop takes nothing further.
    /// </summary>
    public bool TryInspect(int groupIndex, Action<Group?> look) =>
        _loops[LoopOf(groupIndex)].TryPostInspection(groupIndex, look);

    bool ICheckpointLoops.Post(CheckpointRequest request) =>
        _loops[LoopOf(Layout.IndexOf(request.Group))].PostCheckpoint(request);

    public void Receive(NodeId from, ReadOnlySpan<byte> payload)
    {
        if (SnapshotFrame.Is(payload))
        {
            // A snapshot's bytes go past the loops: they are the checkpoint service's.
            _checkpoints.Receive(from, payload);
            return;
        }

        if (_loops.Length == 1)
        {
            ByteBuffer copy = ByteBuffer.Rent(payload.Length);
            copy.Append(payload);
            _loops[0].PostPeer(from, copy);
            return;
        }

        ByteBuffer?[] parts = new ByteBuffer?[_loops.Length];
        ReadOnlySpan<byte> rest = payload;
        ReadOnlySpan<byte> message = rest;
        while (PeerFrame.TryRead(ref rest, out GroupId group, out RaftMessage _, out ReadOnlySpan<byte> _))
        {
            if (Layout.IndexOf(group) is var index and >= 0)
            {
                ref ByteBuffer? part = ref parts[LoopOf(index)];
                part ??= ByteBuffer.Rent(payload.Length);
                part.Append(message[..(message.Length - rest.Length)]);
            }

            message = rest;
        }

        for (int i = 0; i < parts.Length; i++)
        {
            if (parts[i] is { } part)
            {
                _loops[i].PostPeer(from, part);
            }
        }
    }

    public void LinkChanged(NodeId peer, bool up)
    {
        if (up)
        {
            return;
        }

        foreach (PartitionLoop loop in _loops)
        {
            loop.PostLinkDown(peer);
        }
    }

    private int LoopOf(int index) => Layout.LoopOf(index, _loops.Length);

    private void Refuse(ClientBatch batch, int loop)
    {
        ByteBuffer frame = ByteBuffer.Rent();
        Frame.Begin(frame, FrameKind.Replies);
        int count = 0;
        (OutcomeStatus status, string sentence) = _loops[loop].IsClosed
            ? (OutcomeStatus.Unavailable, "The node is stopping; nothing was done. Ask another one.")
            : (OutcomeStatus.Busy, "The node has more waiting than it may hold; try again later.");
        foreach (ref readonly ClientOperation operation in batch.Operations)
        {
            if (LoopOf(operation.GroupIndex) != loop)
            {
                continue;
            }

            int at = frame.Length;
            Frame.BeginReply(frame, operation.Number.Number);
            Refusals.Write(frame, status, sentence);
            Frame.EndReply(frame, at);
            count++;
        }

        batch.Sink.Deliver(frame, count);
    }
}

/// <summary>
/// A loop's bounded inbox: any thread adds, the loop takes everything that waits at once. Client operations and peer
/// frames are bounded by bytes, each on its own, so that neither can starve the other; what the node tells itself
/// (persisted, fetched) always finds room, since it is bounded by what the loop has asked for.
/// </summary>
internal sealed class LoopInbox(long clientBytesMax, long peerBytesMax)
{
    private readonly Lock _lock = new();
    private InboxItem[] _filling = new InboxItem[256];
    private InboxItem[] _taken = new InboxItem[256];
    private int _count;
    private long _clientBytes;
    private long _peerBytes;
    private bool _closed;

    /// <summary>Takes nothing further.</summary>
    public bool IsClosed
    {
        get
        {
            lock (_lock)
            {
                return _closed;
            }
        }
    }

    /// <summary>
    /// False when the item's class is over its bound or the inbox is closed: the caller keeps the item.
    /// </summary>
    public bool TryAdd(in InboxItem item)
    {
        lock (_lock)
        {
            if (_closed)
            {
                return false;
            }

            switch (item.Kind)
            {
                case InboxKind.Client:
                    if (_clientBytes >= clientBytesMax)
                    {
                        return false;
                    }

                    _clientBytes += item.Batch!.Buffer.Length;
                    break;
                case InboxKind.Peer:
                    if (_peerBytes >= peerBytesMax)
                    {
                        return false;
                    }

                    _peerBytes += item.Buffer!.Length;
                    break;
            }

            if (_count == _filling.Length)
            {
                Array.Resize(ref _filling, _count * 2);
            }

            _filling[_count++] = item;
            return true;
        }
    }

    /// <summary>Everything that waits, in order; valid until the next call. For the loop only.</summary>
    public Span<InboxItem> TakeAll()
    {
        int count;
        lock (_lock)
        {
            (_filling, _taken) = (_taken, _filling);
            count = _count;
            _count = 0;
            _clientBytes = 0;
            _peerBytes = 0;
        }

        return _taken.AsSpan(0, count);
    }

    /// <summary>Refuses everything from now on.</summary>
    public void Close()
    {
        lock (_lock)
        {
            _closed = true;
        }
    }
}

/// <summary>What can lie in a loop's inbox.</summary>
internal enum InboxKind : byte
{
    None,

    /// <summary>Operations of a client: <see cref="InboxItem.Batch"/>.</summary>
    Client,

    /// <summary>A frame from a peer: <see cref="InboxItem.Buffer"/>, <see cref="InboxItem.Node"/>.</summary>
    Peer,

    /// <summary>The log holds batch <see cref="InboxItem.Number"/>.</summary>
    Persisted,

    /// <summary>
    /// Entries for a lagging follower: <see cref="InboxItem.Buffer"/> from index <see cref="InboxItem.Number"/>.
    /// </summary>
    Fetched,

    /// <summary>The link to <see cref="InboxItem.Node"/> went down.</summary>
    LinkDown,

    /// <summary>The member <see cref="InboxItem.Node"/> came back without what it had.</summary>
    MemberReplaced,

    /// <summary>The node may vote.</summary>
    AllowVoting,

    /// <summary>The checkpoint service asks or tells: <see cref="InboxItem.Request"/>.</summary>
    Checkpoint,

    /// <summary>The meta group's records have changed: <see cref="InboxItem.View"/>.</summary>
    Meta,

    /// <summary>The meta group is to record something: <see cref="InboxItem.Buffer"/>.</summary>
    MetaAsk,

    /// <summary>
    /// Somebody looks at the group at the index <see cref="InboxItem.Number"/>: <see cref="InboxItem.Look"/>.
    /// </summary>
    Inspect,

    /// <summary>Answers of <see cref="InboxItem.Sink"/> have left, for which reads wait.</summary>
    Room,

    /// <summary>Leadership of a group is to be transferred: <see cref="InboxItem.Move"/>.</summary>
    Move,

    /// <summary>Stop accepting, hand leadership over.</summary>
    Drain,

    /// <summary>Answer what is left with "unknown" and end.</summary>
    Close,
}

/// <summary>One item of a loop's inbox: a flat struct, which fields count depends on the kind.</summary>
internal struct InboxItem
{
    public InboxKind Kind;
    public NodeId Node;
    public GroupId Group;
    public ulong Number;
    public ClientBatch? Batch;
    public ByteBuffer? Buffer;
    public CheckpointRequest? Request;
    public Action<Group?>? Look;
    public MetaView? View;
    public ReplySink? Sink;
    public LeaderMove? Move;
}

/// <summary>
/// Gives what lay in a loop's inbox to the groups that it concerns; they have work in this turn. Owned by one loop; not
/// thread-safe.
/// </summary>
internal sealed class LoopIntake(NodeId self, LoopInbox inbox, LoopGroups groups, GroupGuard guard, TurnEffects effects)
{
    /// <summary>The loop takes no new operations and hands leadership over.</summary>
    public bool IsDraining { get; private set; }

    /// <summary>Takes in one item.</summary>
    public void Take(ref InboxItem item)
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
                MarkPersisted(item.Number);
                groups.MarkQueued();
                break;
            case InboxKind.Fetched:
                groups.Do(
                    item.Group,
                    static (group, read) => group.Fetched(read.Node, read.First, read.Buffer.Written),
                    (item.Node, First: new LogIndex(item.Number), Buffer: item.Buffer!));
                item.Buffer!.Return();
                break;
            case InboxKind.LinkDown:
                ReportUnreachable(item.Node);
                break;
            case InboxKind.MemberReplaced:
                groups.All(static (group, node) => group.Forget(node), item.Node);
                break;
            case InboxKind.AllowVoting:
                groups.All(static (group, _) => group.AllowVoting(), item.Node);
                break;
            case InboxKind.Checkpoint:
                Ask(item.Request!);
                break;
            case InboxKind.Inspect:
                item.Look!(groups.At((int)item.Number));
                break;
            case InboxKind.Meta:
                groups.All(static (group, view) => group.Learn(view), item.View!);
                break;
            case InboxKind.MetaAsk:
                groups.Do(GroupId.Meta, static (group, command) => group.Record(command.Written), item.Buffer!);
                item.Buffer!.Return();
                break;
            case InboxKind.Room:
                groups.All(static (group, sink) => group.Requests.Left(sink), item.Sink!);
                break;
            case InboxKind.Move:
                Begin(item.Move!);
                break;
            case InboxKind.Drain:
                IsDraining = true;
                groups.All(static (group, _) => group.Drain(), item.Node);
                break;
            case InboxKind.Close:
                inbox.Close();
                groups.Close();
                break;
        }
    }

    /// <summary>A frame to this peer was lost.</summary>
    public void ReportUnreachable(NodeId peer) =>
        groups.All(static (group, peer) => group.ReportUnreachable(peer), peer);

    /// <summary>A message that the node sends to itself.</summary>
    public void StepOwn(Group group, in RaftMessage message)
    {
        guard.Step(group, message, group.Stamp, default);
        groups.MarkDirty(group);
    }

    /// <summary>
    /// Steps the messages of the node to itself. Between two Readys only: a step would change the one in hand.
    /// </summary>
    public void StepOwn()
    {
        while (effects.TryTakeOwn(out HeldMessage own))
        {
            StepOwn(own.Group, own.Message);
        }
    }

    private void Ask(CheckpointRequest request)
    {
        if (groups.Find(request.Group) is { } group)
        {
            guard.Ask(group, static (group, request) => group.Checkpoints.Take(group, request), request);
            groups.MarkDirty(group);
        }
    }

    private void Begin(LeaderMove move)
    {
        if (groups.Find(move.Group) is { } group)
        {
            guard.Ask(group, static (group, move) => group.Handover.Begin(group.Core, move), move);
            groups.MarkDirty(group);
        }
    }

    private void AcceptBatch(ClientBatch batch)
    {
        for (int i = 0; i < batch.Operations.Length; i++)
        {
            if (groups.At(batch.Operations[i].GroupIndex) is { } group)
            {
                guard.Accept(group, batch, i);
                groups.MarkDirty(group);
            }
        }

        batch.Release();
    }

    private void StepFrame(NodeId from, ByteBuffer frame)
    {
        ReadOnlySpan<byte> rest = frame.Written;
        while (PeerFrame.TryRead(ref rest, out GroupId id, out RaftMessage message, out MessageStamp stamp,
            out ReadOnlySpan<byte> entries))
        {
            if (groups.Find(id) is { } group)
            {
                message.From = from;
                message.To = self;
                guard.Step(group, message, stamp, entries);
                groups.MarkDirty(group);
            }
        }

        frame.Return();
    }

    /// <summary>The log holds everything up to this batch: tells the groups, and lets go what waited for it.</summary>
    private void MarkPersisted(ulong batch)
    {
        effects.MarkPersisted(batch);
        while (effects.TryTakeConfirmed(out Confirmation confirmed))
        {
            if (confirmed.IsHardState)
            {
                groups.Do(confirmed.Group, static (group, _) => group.Saved(), self);
            }
            else
            {
                groups.Do(
                    confirmed.Group,
                    static (group, last) => group.Persisted(last.Index, last.Term),
                    (confirmed.Index, confirmed.Term));
            }
        }

        effects.ReleasePromises();
    }
}
