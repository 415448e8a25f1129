using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// The Raft messages of a loop's groups: those that may leave go into the peers' frames, promises wait here until what
/// they rest on is on stable storage, and messages of the node to itself wait for their step. Owned by one loop; not
/// thread-safe.
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
        if (message.EntryCount > 0)
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
    /// promise: it was true when it was made, and its receiver compares terms itself.
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
