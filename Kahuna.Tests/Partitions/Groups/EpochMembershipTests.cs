using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;
using Kahuna.Server.State.Meta;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Routing;

namespace Kahuna.Tests.Partitions.Groups;

/// <summary>Whose messages a member of an ephemeral group takes in.</summary>
public sealed class EpochMembershipTests
{
    private const ulong Seed = 70;

    private static readonly GroupId s_group = GroupId.Of(0, isEphemeral: true);
    private static readonly NodeId[] s_nodes = [new(1), new(2), new(3)];

    private readonly StateMachine _meta = new(new StateLimits());
    private readonly List<MetaCommand> _said = [];
    private readonly EpochMembership _life;

    public EpochMembershipTests()
    {
        Apply(new MetaCommand(CommandKind.Configure) { Number = 2, Voters = s_nodes });
        _life = new EpochMembership(
            s_group,
            new LoopOptions
            {
                Self = s_nodes[0],
                Voters = s_nodes,
                PreferredLeader = static _ => s_nodes[0],
                Seed = Seed,
            },
            joined: Epoch.None,
            _said.Add);
    }

    [Fact]
    public void What_a_node_said_before_it_was_started_anew_does_not_count()
    {
        Begin();
        Assert.True(MayTake(RaftMessageKind.AppendReply, incarnation: 7, out bool returned));
        Assert.False(returned);
        Assert.True(MayTake(RaftMessageKind.AppendReply, incarnation: 8, out returned));
        Assert.True(returned);

        // On its way for longer than the node needed to come back without what it acknowledges here.
        foreach (RaftMessageKind kind in Enum.GetValues<RaftMessageKind>())
        {
            Assert.False(MayTake(kind, incarnation: 7, out returned));
            Assert.False(returned);
        }

        Assert.True(MayTake(RaftMessageKind.AppendReply, incarnation: 8, out returned));
        Assert.False(returned);
    }

    [Fact]
    public void What_is_of_another_epoch_and_what_comes_before_this_start_is_recorded_does_not_count()
    {
        Assert.False(MayTake(RaftMessageKind.Append, incarnation: 7, out _));
        Begin();
        RaftMessage message =
            new() { Kind = RaftMessageKind.Append, From = s_nodes[1], To = s_nodes[0], Term = new Term(1) };
        Assert.False(_life.MayTake(in message, new MessageStamp(new Epoch(2), 7), default, out _));
        Assert.True(_life.MayTake(in message, new MessageStamp(new Epoch(1), 7), default, out _));
    }

    [Fact]
    public void A_start_takes_no_part_under_the_number_of_another_one()
    {
        Apply(new MetaCommand(CommandKind.RegisterNode) { Node = s_nodes[0], Incarnation = 7, Nonce = Seed + 1 });
        Assert.False(_life.Learn(_meta.Meta.View(), out _));
        Assert.Equal((Epoch.None, false), (_life.Epoch, _life.IsTakingPart));
    }

    [Fact]
    public void Room_for_long_leases_is_asked_for_once_until_it_may_be_lost()
    {
        Begin();
        Assert.False(_life.MayLease(long.MaxValue / 2));
        Assert.False(_life.MayLease(long.MaxValue / 2));
        Assert.Single(_said, static said => said.Kind == CommandKind.RaiseCeiling);

        // A tick later it may be lost.
        _life.Tick(new RaftCore(
            new RaftConfig { Self = s_nodes[0], Group = s_group, Voters = s_nodes, Seed = 1 },
            new RaftStart(default, [], default, default)));
        Assert.False(_life.MayLease(long.MaxValue / 2));
        Assert.False(_life.MayLease(long.MaxValue / 2));
        Assert.Equal(2, _said.Count(static said => said.Kind == CommandKind.RaiseCeiling));
    }

    [Fact]
    public void A_new_epoch_begins_without_the_slots_that_were_given_away_in_the_one_before()
    {
        Begin();
        Assert.Null(_life.SlotsBefore);
        Apply(new MetaCommand(CommandKind.MoveSlots)
        {
            MapVersion = 1,
            Group = s_group,
            Epoch = new Epoch(1),
            Number = 1,
            Slots = [new SlotRange(6, 6, 0)],
        });
        Assert.False(_life.Learn(_meta.Meta.View(), out _));
        Assert.Null(_life.SlotsBefore);
        foreach (NodeId node in s_nodes[1..])
        {
            Apply(new MetaCommand(CommandKind.RegisterNode) { Node = node, Incarnation = 3, Nonce = 1 });
            Apply(new MetaCommand(CommandKind.Pledge)
            {
                Node = node,
                Incarnation = 3,
                Group = s_group,
                Epoch = new Epoch(1),
                Number = 1,
            });
        }

        Assert.True(_life.Learn(_meta.Meta.View(), out _));
        Assert.Equal(
            (new Epoch(2), 2UL, 1), (_life.Epoch, _life.SlotsBefore!.Version, _life.SlotsBefore[6]));
    }

    private void Begin()
    {
        Apply(new MetaCommand(CommandKind.RegisterNode) { Node = s_nodes[0], Incarnation = 7, Nonce = Seed });
        Assert.True(_life.Learn(_meta.Meta.View(), out VotingRight voting));
        Assert.Equal((new Epoch(1), true, VotingRight.Full), (_life.Epoch, _life.IsTakingPart, voting));
    }

    private bool MayTake(RaftMessageKind kind, ulong incarnation, out bool returned)
    {
        RaftMessage message = new() { Kind = kind, From = s_nodes[1], To = s_nodes[0], Term = new Term(1) };
        return _life.MayTake(in message, new MessageStamp(new Epoch(1), incarnation), default, out returned);
    }

    private void Apply(MetaCommand command)
    {
        ByteBuffer bytes = ByteBuffer.Rent();
        command.Write(bytes);
        Assert.True(Command.TryRead(bytes.Written, out Command decoded));
        _meta.Apply(in decoded, null);
        bytes.Return();
    }
}
