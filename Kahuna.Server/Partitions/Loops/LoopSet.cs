using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Wire.Buffers;
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

    public LoopSet(LoopOptions options, LoopPorts ports)
    {
        _checkpoints = ports.Checkpoints;
        _ports = ports;
        _loops = new PartitionLoop[options.Loops];
        Layout = ports.Layout(options);
        MetaPublisher meta = new();
        for (int i = 0; i < _loops.Length; i++)
        {
            _loops[i] = new PartitionLoop(options, i, ports, meta);
        }

        _groups = [.. _loops.SelectMany(static loop => loop.Owned).OrderBy(static group => group.Slot)];
        meta.Attach(_loops);
    }

    public GroupLayout Layout { get; }

    public ReadOnlySpan<PartitionLoop> Loops => _loops;

    /// <summary>Monotonic ms, as the loops count waiting times.</summary>
    public long NowMs => _loops[0].NowMs;

    /// <summary>Bytes that the data of each durability takes up in memory, as of the latest ticks.</summary>
    public (long Persistent, long Ephemeral) MemoryBytes => (_ports.PersistentMemory.Bytes, _ports.Memory.Bytes);

    /// <summary>What this node has of the group in a slot.</summary>
    public Group Group(int slot) => _groups[slot];

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
            concerned |= 1UL << LoopOf(operation.Slot);
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

    /// <summary>
    /// Every loop has answered what it accepted and, where there is another node, handed leadership over; see
    /// <see cref="Drain"/>.
    /// </summary>
    public bool IsDrained => Array.TrueForAll(_loops, static loop => loop.IsDrained);

    /// <summary>Takes no new operations and hands leadership over.</summary>
    public void Drain() => Array.ForEach(_loops, static loop => loop.PostDrain());

    /// <summary>Answers what is left and takes nothing further.</summary>
    public void Close() => Array.ForEach(_loops, static loop => loop.PostClose());

    bool ICheckpointLoops.Post(CheckpointRequest request) =>
        _loops[LoopOf(Layout.SlotOf(request.Group))].PostCheckpoint(request);

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
            if (Layout.SlotOf(group) is var slot and >= 0)
            {
                ref ByteBuffer? part = ref parts[LoopOf(slot)];
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

    private int LoopOf(int slot) => Layout.LoopOf(slot, _loops.Length);

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
            if (LoopOf(operation.Slot) != loop)
            {
                continue;
            }

            int at = frame.Length;
            Frame.BeginReply(frame, operation.Number);
            Outcome.WriteError(frame, status, sentence);
            Frame.EndReply(frame, at);
            count++;
        }

        batch.Sink.Deliver(frame, count);
    }
}
