using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;
using Kahuna.Server.State.Meta;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// What the meta group does besides: registers this start of the node, takes in what others want recorded, and hands
/// the records to all loops (docs/adr/0011-ephemeral-groups.md). Owned by the meta group; not thread-safe.
/// </summary>
internal sealed class MetaHooks(NodeId self, NodeRegistration registration, LogBatch log, PeerMessages peers)
    : GroupHooks
{
    private int _savesPending;

    public override void Started(Group group, StateMachine state)
    {
        SaveStart(group, registration.NextStart());
        registration.Publish(state);
    }

    public override void Saved()
    {
        InvariantException.Require(_savesPending > 0, "the number of a start is stored once");
        _savesPending--;
        if (_savesPending == 0)
        {
            registration.Stored();
        }
    }

    public override void Tick(Group group)
    {
        bool leads = group.Requests.IsServing && group.IsLeader;
        if (registration.Tick(leads, bytes => Record(group, bytes.Written)) is { } start)
        {
            SaveStart(group, start);
        }
    }

    public override void Record(Group group, ReadOnlySpan<byte> command)
    {
        if (!Command.TryRead(command, out Command decoded) || MetaCommand.Read(in decoded) is not { } wanted)
        {
            return;
        }

        RaftCore core = group.Core;
        if (core.Role == RaftRole.Leader)
        {
            PendingRequests requests = group.Requests;
            if (requests.IsServing && !requests.IsDraining && registration.MayPropose(wanted))
            {
                requests.Add(command);
            }
        }
        else if (!core.Leader.IsNone)
        {
            peers.Send(group, new RaftMessage { Kind = RaftMessageKind.Forward, From = self, To = core.Leader },
                command);
        }
    }

    public override void Applied(ReadOnlySpan<byte> items)
    {
        while (CommandEntry.TryReadItem(ref items, out ReadOnlySpan<byte> bytes))
        {
            InvariantException.Require(Command.TryRead(bytes, out Command command), "an applied command decodes");
            registration.Applied(in command);
        }
    }

    public override void Installed() => registration.Changed();

    public override void LoseProposed() => registration.LoseProposed();

    public override void Publish(StateMachine state) => registration.Publish(state);

    /// <summary>Stores the number of this start.</summary>
    private void SaveStart(Group group, in HardState start)
    {
        _savesPending++;
        log.SaveAlone(group, GroupId.Node, start);
    }
}
