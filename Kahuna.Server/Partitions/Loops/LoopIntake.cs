using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Partitions.Loops;

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
                if (groups.Find(item.Request!.Group) is { } asked)
                {
                    guard.Ask(asked, static (group, request) => group.Checkpoints.Take(group, request), item.Request);
                    groups.MarkDirty(asked);
                }

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

    private void AcceptBatch(ClientBatch batch)
    {
        for (int i = 0; i < batch.Operations.Length; i++)
        {
            if (groups.InSlot(batch.Operations[i].Slot) is { } group)
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
