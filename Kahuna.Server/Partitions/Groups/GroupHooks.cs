using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;
using Kahuna.Server.State.Meta;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// What a group does besides replicating its state; for most groups that is nothing. Owned by one <see cref="Group"/>;
/// not thread-safe.
/// </summary>
internal class GroupHooks
{
    /// <summary>The hooks of a group that does nothing besides. Stateless.</summary>
    public static GroupHooks None { get; } = new();

    /// <summary>The group is loaded.</summary>
    public virtual void Started(Group group, StateMachine state)
    {
    }

    /// <summary>A hard state that stands alone is on stable storage.</summary>
    public virtual void Saved()
    {
    }

    /// <summary>A tick of the node's clock.</summary>
    public virtual void Tick(Group group)
    {
    }

    /// <summary>The group is to record this command; without a leader it is lost.</summary>
    public virtual void Record(Group group, ReadOnlySpan<byte> command)
    {
    }

    /// <summary>The commands of an entry were applied.</summary>
    /// <param name="items">The encoded commands, each after its length.</param>
    public virtual void Applied(ReadOnlySpan<byte> items)
    {
    }

    /// <summary>Another state has taken the place of the group's.</summary>
    public virtual void Installed()
    {
    }

    /// <summary>What this leader had proposed is lost, or nobody knows what became of it.</summary>
    public virtual void LoseProposed()
    {
    }

    /// <summary>The turn has applied what was due.</summary>
    public virtual void Publish(StateMachine state)
    {
    }
}

/// <summary>
/// What the meta group does besides: registers this start of the node, takes in what others want recorded, and hands
/// the records to all loops (docs/adr/0011-ephemeral-groups.md). Owned by the meta group; not thread-safe.
/// </summary>
internal sealed class MetaHooks(GroupPlace place, NodeRegistration registration) : GroupHooks
{
    private int _savesPending;

    /// <summary>The hooks of this node's meta group.</summary>
    public static MetaHooks Of(GroupPlace place, MetaPublisher publisher) =>
        new(place, new NodeRegistration(place.Options, place.Ports, publisher));

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
        if (group.CaughtUpAt is { } at)
        {
            place.Ports.Leadership.MetaCaughtUp(at);
        }

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
            place.Turn.Peers.Send(
                group,
                new RaftMessage { Kind = RaftMessageKind.Forward, From = place.Options.Self, To = core.Leader },
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
        place.Turn.Log.SaveAlone(group, GroupId.Node, start);
    }
}
