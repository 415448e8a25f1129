using System.Buffers.Binary;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// The Raft messages of a loop's groups: messages that may be sent go into the peers' frames; promises wait here until
/// what they rest on is on stable storage, and messages of the node to itself wait for their step. Owned by one loop;
/// not thread-safe.
/// </summary>
internal sealed class PeerMessages(LoopOptions options, IPeerTransport transport)
{
    private readonly PeerFrames _frames = new(options, transport);
    private readonly Ring<HeldMessage> _held = new(64);
    private readonly Ring<HeldMessage> _own = new(8);
    private int _unnumbered;

    /// <summary>Queues a message; the entries of an append come from the core's memory.</summary>
    public void Send(Group group, in RaftMessage message, RaftCore core)
    {
        if (_frames.For(message) is not { } frame)
        {
            return;
        }

        int at = PeerFrame.BeginMessage(frame, group.Id, message, group.Stamp);
        if (message.Kind == RaftMessageKind.Append && message.EntryCount > 0)
        {
            core.CopyEntries(message.Index.Next(), message.EntryCount, frame);
        }

        PeerFrame.EndMessage(frame, at);
        _frames.SendWhenLarge(message.To, frame);
    }

    /// <summary>Queues a message with entries that were read from storage, or with none.</summary>
    public void Send(Group group, in RaftMessage message, ReadOnlySpan<byte> entries)
    {
        if (_frames.For(message) is not { } frame)
        {
            return;
        }

        int at = PeerFrame.BeginMessage(frame, group.Id, message, group.Stamp);
        frame.Append(entries);
        PeerFrame.EndMessage(frame, at);
        _frames.SendWhenLarge(message.To, frame);
    }

    /// <summary>Queues a promise that rests only on what is on stable storage already.</summary>
    public void SendPromise(Group group, in RaftMessage message) =>
        Release(new HeldMessage { Group = group, Message = message, Stamp = group.Stamp });

    /// <summary>
    /// Holds a promise until everything that was handed to the log so far, and in this round, is on stable storage.
    /// </summary>
    public void HoldPromise(Group group, in RaftMessage message)
    {
        _held.Add(new HeldMessage { Group = group, Message = message, Stamp = group.Stamp });
        _unnumbered++;
    }

    /// <summary>The round was submitted: promises that were held in it wait for this batch.</summary>
    public void WaitFor(ulong batch)
    {
        int numbered = _held.Count - _unnumbered;
        InvariantException.Require(numbered >= 0 && (numbered == 0 || _held[numbered - 1].Batch <= batch),
            "promises wait in the order of their batches");
        for (int i = _held.Count - _unnumbered; i < _held.Count; i++)
        {
            _held[i].Batch = batch;
        }

        _unnumbered = 0;
    }

    /// <summary>Releases the promises that wait for no batch after this one.</summary>
    /// <remarks>
    /// <para>
    /// A vote, a request for a vote and an acknowledgement are promises: the node must still know of them after a crash
    /// (docs/adr/0002-raft-core.md). The core marks them, and they wait here for the batch that has what they rest on.
    /// </para>
    /// <list type="number">
    /// <item>
    /// One number is enough. A promise rests on entries and on a hard state that were handed to the log in this round
    /// or before; batches become durable in their order (docs/adr/0003-log-format.md). So it waits for the last batch
    /// that was submitted when its round ended. A round with nothing to store takes the number of an earlier batch, and
    /// its promises leave at once if that batch is durable.
    /// </item>
    /// <item>
    /// The queue is in the order of the batches, so only its front is looked at. What was added in a round that is not
    /// submitted yet has no number and lies behind all others; <c>_unnumbered</c> keeps it from being taken for batch
    /// 0.
    /// </item>
    /// <item>
    /// The world may have moved on meanwhile. A group that has stopped promises nothing. In an ephemeral group the
    /// stamp must still be that of the epoch, and the node must not have pledged to keep out of it: a pledge also binds
    /// what already waits for the disk (docs/adr/0011-ephemeral-groups.md, decision 5). A later term does not void a
    /// promise: its receiver compares terms itself. The entries that it acknowledges may be replaced by then, even in
    /// the batch that has them. They cannot be committed: the leader that replaced them was elected without them.
    /// </item>
    /// <item>
    /// A message to this node itself (its own vote) is stepped after the round: a step would change the Ready that is
    /// in hand.
    /// </item>
    /// </list>
    /// </remarks>
    public void ReleaseThrough(ulong persisted)
    {
        while (_held.Count > _unnumbered && _held[0].Batch <= persisted)
        {
            HeldMessage held = _held.Take();
            if (!held.Group.Failed && held.Group.MayPromise(held.Stamp))
            {
                Release(held);
            }
        }
    }

    /// <summary>Takes the next message of the node to itself that may be stepped. Between two Readys only.</summary>
    public bool TryTakeOwn(out HeldMessage message)
    {
        while (_own.Count > 0)
        {
            message = _own.Take();
            if (message.Group.MayPromise(message.Stamp))
            {
                return true;
            }
        }

        message = default;
        return false;
    }

    /// <summary>Sends one frame to each peer that has messages.</summary>
    public void SendFrames() => _frames.Send();

    /// <summary>The next peer to which a frame was lost since the last call.</summary>
    public bool TryTakeUnreachable(out NodeId peer) => _frames.TryTakeUnreachable(out peer);

    private void Release(in HeldMessage held)
    {
        if (_frames.For(held.Message) is { } frame)
        {
            int at = PeerFrame.BeginMessage(frame, held.Group.Id, held.Message, held.Stamp);
            PeerFrame.EndMessage(frame, at);
        }
        else
        {
            _own.Add(held);
        }
    }
}

/// <summary>The frames that a loop fills for its peers during a turn. Owned by one loop; not thread-safe.</summary>
internal sealed class PeerFrames
{
    /// <summary>
    /// A frame of this size leaves before the turn ends, so that the next one is made while it is sent.
    /// </summary>
    private const int FrameBytesTarget = 1 << 20;

    private readonly NodeId[] _peers;
    private readonly PeerLanes[] _lanes;
    private uint _unreachable;

    public PeerFrames(LoopOptions options, IPeerTransport transport)
    {
        _peers = [.. options.Voters.Where(voter => voter != options.Self)];
        _lanes = [.. _peers.Select(peer => new PeerLanes(transport, peer))];
    }

    /// <summary>The open frame that takes a message; null when it is to no peer (ourselves).</summary>
    public ByteBuffer? For(in RaftMessage message)
    {
        int peer = Array.IndexOf(_peers, message.To);
        return peer < 0 ? null : _lanes[peer].For(message);
    }

    public void SendWhenLarge(NodeId to, ByteBuffer frame)
    {
        if (frame.Length >= FrameBytesTarget)
        {
            int peer = Array.IndexOf(_peers, to);
            Note(peer, _lanes[peer].TrySendBulk());
        }
    }

    /// <summary>Sends what is open for each peer.</summary>
    public void Send()
    {
        for (int i = 0; i < _lanes.Length; i++)
        {
            Note(i, _lanes[i].TrySend());
        }
    }

    /// <summary>The next peer to which a frame was lost since the last call.</summary>
    public bool TryTakeUnreachable(out NodeId peer)
    {
        for (int i = 0; i < _peers.Length; i++)
        {
            if ((_unreachable & (1u << i)) != 0)
            {
                _unreachable &= ~(1u << i);
                peer = _peers[i];
                return true;
            }
        }

        peer = default;
        return false;
    }

    private void Note(int peer, bool isSent)
    {
        if (!isSent)
        {
            _unreachable |= 1u << peer;
        }
    }
}

/// <summary>
/// What a turn says to one peer: a frame of entries and what must stay behind them, and a frame of what must not wait
/// behind them (heartbeats, votes, answers). While nothing waits for the peer both leave as one. Owned by one loop; not
/// thread-safe.
/// </summary>
internal sealed class PeerLanes(IPeerTransport transport, NodeId peer)
{
    private ByteBuffer? _urgent;
    private ByteBuffer? _bulk;
    private int _urgentAt;

    /// <summary>The open frame that takes this message.</summary>
    public ByteBuffer For(in RaftMessage message)
    {
        if (message.Kind is RaftMessageKind.Append or RaftMessageKind.Forward
            || message is { Kind: RaftMessageKind.Heartbeat, InOrder: true })
        {
            return _bulk ??= transport.BeginFrame();
        }

        if (_urgent is null)
        {
            _urgent = transport.BeginFrame();
            _urgentAt = _urgent.Length;
        }

        return _urgent;
    }

    /// <summary>
    /// Sends what is open. False when entries, or something else that the sender counts on, were dropped.
    /// </summary>
    public bool TrySend()
    {
        bool isSent = true;
        if (_urgent is { } urgent)
        {
            _urgent = null;
            if (_bulk is null || transport.HasWaiting(peer))
            {
                isSent = transport.TrySend(peer, urgent, isUrgent: true);
            }
            else
            {
                _bulk.Append(urgent.Written[_urgentAt..]);
                urgent.Return();
            }
        }

        return TrySendBulk() && isSent;
    }

    /// <summary>Sends the frame of entries, if one is open.</summary>
    public bool TrySendBulk()
    {
        ByteBuffer? bulk = _bulk;
        _bulk = null;
        return bulk is null || transport.TrySend(peer, bulk);
    }
}

/// <summary>
/// Layout of a frame between nodes: the messages of any number of groups, one after the other. Little-endian.
/// <code>
/// message:  u32 group, u8 kind, u8 flags (1 reject, 2 transfer, uncounted or in order, 4 stalled), u16 zero,
///           u64 term, u64 index, u64 log term, u64 commit, u64 round, u64 hint,
///           u32 entry count, u32 entries length,
///           of an ephemeral group: u64 epoch, u64 incarnation of the sender,
///           entries (EntryCodec)
/// </code>
/// Sender and receiver are those of the link. Stateless, any thread.
/// </summary>
internal static class PeerFrame
{
    public const int MessageBytes = 64;
    private const int StampBytes = 16;
    private const byte FlagReject = 1;
    private const byte FlagTransfer = 2;
    private const byte FlagStalled = 4;

    /// <summary>
    /// Appends the message's header; the caller appends the entries and then calls <see cref="EndMessage"/>.
    /// </summary>
    public static int BeginMessage(ByteBuffer frame, GroupId group, in RaftMessage message,
        MessageStamp stamp = default)
    {
        int at = frame.Length;
        Span<byte> span = frame.Take(MessageBytes);
        BinaryPrimitives.WriteUInt32LittleEndian(span, group.Value);
        span[4] = (byte)message.Kind;
        span[5] = (byte)((message.Reject ? FlagReject : 0) | (message.Transfer ? FlagTransfer : 0) | (message.Stalled
            ? FlagStalled : 0));
        span[6] = 0;
        span[7] = 0;
        BinaryPrimitives.WriteUInt64LittleEndian(span[8..], message.Term.Value);
        BinaryPrimitives.WriteUInt64LittleEndian(span[16..], message.Index.Value);
        BinaryPrimitives.WriteUInt64LittleEndian(span[24..], message.LogTerm.Value);
        BinaryPrimitives.WriteUInt64LittleEndian(span[32..], message.Commit.Value);
        BinaryPrimitives.WriteUInt64LittleEndian(span[40..], message.Round);
        BinaryPrimitives.WriteUInt64LittleEndian(span[48..], message.Hint.Value);
        BinaryPrimitives.WriteInt32LittleEndian(span[56..], message.EntryCount);
        BinaryPrimitives.WriteUInt32LittleEndian(span[60..], 0);
        if (group.IsEphemeral)
        {
            span = frame.Take(StampBytes);
            BinaryPrimitives.WriteUInt64LittleEndian(span, stamp.Epoch.Value);
            BinaryPrimitives.WriteUInt64LittleEndian(span[8..], stamp.Incarnation);
        }

        return at;
    }

    /// <summary>
    /// Writes the length of the entries that were appended since <see cref="BeginMessage"/> returned
    /// <paramref name="at"/>.
    /// </summary>
    public static void EndMessage(ByteBuffer frame, int at)
    {
        Span<byte> span = frame.Array.AsSpan(at);
        int headerBytes = HeaderBytes(new GroupId(BinaryPrimitives.ReadUInt32LittleEndian(span)));
        InvariantException.Require(frame.Length - at >= headerBytes, "a message ends behind its header");
        BinaryPrimitives.WriteUInt32LittleEndian(span[60..], (uint)(frame.Length - at - headerBytes));
    }

    /// <summary>
    /// Takes the next message off <paramref name="rest"/>. False at the end or when what is left is no message.
    /// </summary>
    public static bool TryRead(ref ReadOnlySpan<byte> rest, out GroupId group, out RaftMessage message,
        out ReadOnlySpan<byte> entries) =>
        TryRead(ref rest, out group, out message, out _, out entries);

    /// <inheritdoc cref="TryRead(ref ReadOnlySpan{byte}, out GroupId, out RaftMessage, out ReadOnlySpan{byte})"/>
    public static bool TryRead(ref ReadOnlySpan<byte> rest, out GroupId group, out RaftMessage message,
        out MessageStamp stamp, out ReadOnlySpan<byte> entries)
    {
        group = default;
        message = default;
        stamp = default;
        entries = default;
        if (rest.Length < MessageBytes)
        {
            return false;
        }

        group = new GroupId(BinaryPrimitives.ReadUInt32LittleEndian(rest));
        int headerBytes = HeaderBytes(group);
        uint length = BinaryPrimitives.ReadUInt32LittleEndian(rest[60..]);
        if (rest.Length < headerBytes || length > (uint)(rest.Length - headerBytes))
        {
            return false;
        }

        if (group.IsEphemeral)
        {
            stamp = new MessageStamp(new Epoch(BinaryPrimitives.ReadUInt64LittleEndian(rest[MessageBytes..])),
                BinaryPrimitives.ReadUInt64LittleEndian(rest[(MessageBytes + 8)..]));
        }

        message.Kind = (RaftMessageKind)rest[4];
        message.Reject = (rest[5] & FlagReject) != 0;
        message.Transfer = (rest[5] & FlagTransfer) != 0;
        message.Stalled = (rest[5] & FlagStalled) != 0;
        message.Term = new Term(BinaryPrimitives.ReadUInt64LittleEndian(rest[8..]));
        message.Index = new LogIndex(BinaryPrimitives.ReadUInt64LittleEndian(rest[16..]));
        message.LogTerm = new Term(BinaryPrimitives.ReadUInt64LittleEndian(rest[24..]));
        message.Commit = new LogIndex(BinaryPrimitives.ReadUInt64LittleEndian(rest[32..]));
        message.Round = BinaryPrimitives.ReadUInt64LittleEndian(rest[40..]);
        message.Hint = new LogIndex(BinaryPrimitives.ReadUInt64LittleEndian(rest[48..]));
        message.EntryCount = BinaryPrimitives.ReadInt32LittleEndian(rest[56..]);
        entries = rest.Slice(headerBytes, (int)length);
        rest = rest[(headerBytes + (int)length)..];
        return true;
    }

    private static int HeaderBytes(GroupId group) => group.IsEphemeral ? MessageBytes + StampBytes : MessageBytes;
}

/// <summary>A message that leaves when a batch is on stable storage. Owned by a <see cref="PeerMessages"/>.</summary>
internal struct HeldMessage
{
    /// <summary>The batch; 0 until it is submitted.</summary>
    public ulong Batch;

    /// <summary>The group whose message it is.</summary>
    public Group Group;

    /// <summary>The message.</summary>
    public RaftMessage Message;

    /// <summary>Epoch and incarnation under which it was made.</summary>
    public MessageStamp Stamp;
}

/// <summary>What a message of an ephemeral group says of its sender; the default for other groups. A value.</summary>
/// <param name="Epoch">The epoch that it is about.</param>
/// <param name="Incarnation">The start of its node that the sender is.</param>
internal readonly record struct MessageStamp(Epoch Epoch, ulong Incarnation);
