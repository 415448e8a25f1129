using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>What the checkpoint service asks a group for, or tells it. Owned by one group; not thread-safe.</summary>
internal sealed class CheckpointRequests(Checkpointing checkpointing, GroupDurability durability,
    StateInstaller installer,
    ICheckpointInbox checkpoints)
{
    /// <summary>Takes a request or a message. A group that has stopped answers, and does nothing.</summary>
    public void Take(Group group, CheckpointRequest request)
    {
        if (request.Epoch != durability.Epoch)
        {
            TakeOfOtherEpoch(group.Id, request);
            return;
        }

        bool mayBegin = !group.Failed;
        switch (request)
        {
            case BeginView { Transfer: not 0 } begin:
                checkpointing.Sent.Begin(begin.Transfer, mayBegin && !checkpointing.IsStill);
                break;
            case TakeRecords { Transfer: not 0 } take:
                checkpointing.Sent.Take(take.Transfer, take.Slice, take.BytesMax);
                break;
            case EndView end:
                checkpointing.Sent.End(end.Transfer);
                break;
            case BeginView begin:
                checkpointing.BeginView(mayBegin, begin.Whole);
                break;
            case TakeRecords take:
                checkpointing.Take(take.Slice, take.BytesMax, group.Core.DurableIndex);
                break;
            case StateStored stored:
                checkpointing.StoredThrough(stored.Index);
                break;
            case StateNotStored:
                checkpointing.NotStored();
                break;
            case SnapshotSent sent:
                checkpointing.SendingEnded(sent.Follower, sent.Index, sent.Installed);
                group.Core.SnapshotEnded(sent.Follower, sent.Index, sent.Installed);
                break;
            case PrepareInstall prepare:
                checkpointing.AnswerInstall(installer.Prepare(group, prepare.Mark));
                break;
            case DropState:
                checkpointing.Drop();
                break;
            case Install { State: { } state, Mark: var mark }:
                installer.PutInPlace(group, state, mark);
                break;
            case Install:
                checkpointing.GoOn();
                break;
        }
    }

    /// <summary>The request is about an epoch that is over, and is answered so.</summary>
    private void TakeOfOtherEpoch(GroupId id, CheckpointRequest request)
    {
        switch (request)
        {
            case BeginView begin:
                checkpoints.Post(new ViewBegun(id, null, begin.Whole, begin.Transfer));
                break;
            case TakeRecords take:
                checkpoints.Post(new RecordsTaken(id, take.Slice, More: false, Ended: true, 0, take.Transfer));
                break;
            case PrepareInstall:
                checkpoints.Post(new InstallAnswered(id, InstallAnswer.Superseded));
                break;
        }
    }
}
