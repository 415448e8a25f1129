using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.State.Meta;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Partitions.Groups;

/// <summary>
/// A node that was started for another cluster than the recorded one does not go on, and what is to be recorded is in
/// the log once, however often it is said.
/// </summary>
public sealed class NodeRegistrationTests
{
    [Theory]
    [InlineData(2, new ushort[] { 1, 2, 3 }, null)]
    [InlineData(2, new ushort[] { 3, 1, 2 }, null)]
    [InlineData(2, new ushort[] { 1 }, "The cluster has recorded that its nodes are 1, with 2 partition(s), but this node is started for the nodes 1, 2, 3, with 2 partition(s). Correct --peers or --partitions.")]
    [InlineData(2, new ushort[] { 1, 2, 3, 4, 5 }, "its nodes are 1, 2, 3, 4, 5")]
    [InlineData(4, new ushort[] { 1, 2, 3 }, "its nodes are 1, 2, 3, with 4 partition(s)")]
    public void The_recorded_configuration_is_compared(int partitions, ushort[] voters, string? words)
    {
        ModelCluster cluster = new(3, partitions: 2);
        LoopOptions options = new()
        {
            Self = new NodeId(1),
            Voters = cluster.Ids,
            PreferredLeader = static _ => new NodeId(1),
            Seed = 1,
            HasEphemeral = true,
        };
        MetaPublisher board = new();
        NodeRegistration desk = new(options, cluster[1].Ports!, board);
        StateMachine state = new(options.StateLimits);
        desk.Publish(state);
        Assert.Empty(cluster[1].Failures);

        Apply(state, new MetaCommand(CommandKind.Configure)
        {
            Number = (ulong)partitions,
            Voters = [.. voters.Select(id => new NodeId(id))],
        });
        desk.Changed();
        desk.Publish(state);
        if (words is null)
        {
            Assert.Empty(cluster[1].Failures);
        }
        else
        {
            Assert.Contains(
                words,
                Assert.IsType<StorageException>(Assert.Single(cluster[1].Failures)).Message,
                StringComparison.Ordinal);
        }
    }

    [Fact]
    public void What_is_said_again_while_no_majority_answers_is_proposed_once()
    {
        ModelCluster cluster = Recording(out Group leader);
        ulong before = leader.Core.LastIndex.Value;
        NodeId[] others = [.. cluster.Ids.Where(id => !leader.Core.Leader.Equals(id))];
        cluster.Cut.UnionWith(others);
        for (int i = 0; i < 10; i++)
        {
            Ask(cluster, leader, number: 1);
            Ask(cluster, leader, number: 2);
        }

        Assert.Equal(before + 2, leader.Core.LastIndex.Value);
        Assert.True(leader.Core.CommitIndex.Value < before + 2);
        cluster.Cut.Clear();
        cluster.Tick(10);
        Assert.True(leader.Core.CommitIndex.Value >= before + 2);

        // It was applied; whether it is needed again is for the one who asks to say.
        before = leader.Core.LastIndex.Value;
        Ask(cluster, leader, number: 1);
        Assert.Equal(before + 1, leader.Core.LastIndex.Value);
    }

    [Fact]
    public void What_was_dropped_while_leadership_was_to_be_handed_over_is_proposed_when_it_is_said_again()
    {
        ModelCluster cluster = Recording(out Group leader);
        NodeId target = cluster.Ids.First(id => !leader.Core.Leader.Equals(id));
        cluster.Cut.Add(target);
        Assert.True(leader.Core.TryTransfer(target));
        Ask(cluster, leader, number: 1);
        ulong before = leader.Core.LastIndex.Value;
        while (leader.Core.IsTransferring)
        {
            cluster.Tick();
        }

        Assert.True(leader.IsLeader);
        Assert.Equal(before, leader.Core.LastIndex.Value);
        Ask(cluster, leader, number: 1);
        Assert.Equal(before + 1, leader.Core.LastIndex.Value);
    }

    [Fact]
    public void What_an_earlier_leadership_proposed_may_be_proposed_again()
    {
        MetaCommand command = new(CommandKind.Pledge)
        {
            Node = new NodeId(2),
            Group = GroupId.Of(0, isEphemeral: true),
            Epoch = new Epoch(1),
            Number = 1,
        };
        NodeRegistration desk = new(
            new LoopOptions
            {
                Self = new NodeId(1),
                Voters = [new NodeId(1)],
                PreferredLeader = static _ => new NodeId(1),
                Seed = 1,
                HasEphemeral = true,
            },
            new ModelCluster(1)[1].Ports!,
            new MetaPublisher());
        Assert.True(desk.MayPropose(command));
        Assert.False(desk.MayPropose(command with { Voters = new NodeId[0] }));
        Assert.True(desk.MayPropose(command with { Kind = CommandKind.ReleasePledge }));
        desk.LoseProposed();
        Assert.True(desk.MayPropose(command));
    }

    /// <summary>A cluster whose meta group is led, and its leader.</summary>
    private static ModelCluster Recording(out Group leader)
    {
        ModelCluster cluster = new(3, configure: static options => options with { HasEphemeral = true });
        int meta = new GroupLayout(1, hasEphemeral: true).IndexOf(GroupId.Meta);
        cluster.Elect();
        cluster.Tick(100);
        leader = cluster[cluster.LeaderOf(meta).Value].Loops!.Group(meta);
        return cluster;
    }

    private static void Ask(ModelCluster cluster, Group leader, ulong number)
    {
        ByteBuffer bytes = ByteBuffer.Rent();
        new MetaCommand(CommandKind.Pledge)
        {
            Node = new NodeId(2),
            Group = GroupId.Of(0, isEphemeral: true),
            Epoch = new Epoch(1_000),
            Number = number,
        }.Write(bytes);
        cluster[leader.Core.Leader.Value].Loops!.Loops[0].PostMetaAsk(bytes);
        cluster.Settle();
    }

    private static void Apply(StateMachine state, MetaCommand command)
    {
        ByteBuffer bytes = ByteBuffer.Rent();
        command.Write(bytes);
        Assert.True(Command.TryRead(bytes.Written, out Command decoded));
        state.BeginEntry(default, new ClusterTime(1));
        state.Apply(in decoded, null);
        bytes.Return();
    }
}
