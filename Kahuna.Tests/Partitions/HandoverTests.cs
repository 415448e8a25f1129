using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Partitions;

/// <summary>Leadership that is handed over, or is not taken, beside writes and times to live.</summary>
public sealed class HandoverTests
{
    [Fact]
    public void Preferred_node_that_does_not_take_leadership_is_asked_less_and_less_often()
    {
        ModelCluster cluster = Rejoining();
        int refused = 0;
        for (int i = 0; i < 2_000; i++)
        {
            ModelSink sink = cluster.Send(cluster.LeaderOf(), CommandKind.Set, "k", 0);
            cluster.Settle();
            refused += sink.Replies[0].Status == OutcomeStatus.NotLeader ? 1 : 0;
            cluster.Tick();
        }

        Assert.InRange(refused, 0, 150);
    }

    [Fact]
    public void Keys_expire_after_a_handover_that_failed()
    {
        ModelCluster cluster = Rejoining();
        NodeId leader = cluster.LeaderOf();
        for (int i = 0; i < 400; i++)
        {
            cluster.Send(leader, CommandKind.Set, $"k{i}", 20);
            cluster.Tick();
        }

        cluster.Tick(400);
        Assert.Equal(leader, cluster.LeaderOf());
        ModelSink read = cluster.Send(leader, CommandKind.Get, "k399", 0);
        cluster.Settle();
        Assert.Equal(OutcomeStatus.NotFound, read.Replies[0].Status);
        Assert.Equal(0, cluster[leader.Value].Loops!.Group(0).State.Counts.Keys);
    }

    [Fact]
    public void Stopping_node_does_not_take_leadership_back()
    {
        ModelCluster cluster = new(3, partitions: 2);
        cluster.Elect();
        cluster.Tick(100);
        Assert.Equal(new NodeId(1), cluster.LeaderOf());
        cluster[1].Loops!.Loops[0].PostDrain();
        int led = 0;
        for (int i = 0; i < 200; i++)
        {
            cluster.Tick();
            led += cluster[1].Loops!.Group(0).IsLeader ? 1 : 0;
        }

        Assert.InRange(led, 0, 10);
        Assert.True(cluster[1].Loops!.Loops[0].IsDrained);
    }

    [Fact]
    public void Key_that_a_read_found_expired_is_not_back_under_the_next_leader()
    {
        ModelCluster cluster = new(3);
        cluster.Elect();
        cluster.Tick(100);
        NodeId leader = cluster.LeaderOf();
        cluster.Send(leader, CommandKind.Set, "k", 10_000);
        cluster.Settle();
        cluster.Tick(4);
        cluster.Pass(9_801);
        Assert.Equal(OutcomeStatus.Found, Read(cluster, leader));
        cluster.Crash(leader);
        NodeId next = cluster.Elect();
        Assert.Equal(OutcomeStatus.Found, Read(cluster, next));
        cluster.Tick(300);
        Assert.Equal(OutcomeStatus.NotFound, Read(cluster, cluster.LeaderOf()));
    }

    [Fact]
    public void Key_whose_extension_is_under_way_is_not_expired_for_a_reader()
    {
        ModelCluster cluster = new(3);
        NodeId leader = cluster.Elect();
        cluster.Send(leader, CommandKind.Set, "k", 1_000);
        cluster.Settle();
        cluster.Pass(980);
        ModelSink extended = cluster.Send(leader, CommandKind.Extend, "k", 10_000);
        cluster.Settle(sync: false);
        cluster.Pass(30);
        Assert.Equal(OutcomeStatus.Found, Read(cluster, leader));
        cluster.Settle();
        Assert.Equal(OutcomeStatus.Applied, extended.Replies[0].Status);
        Assert.Equal(OutcomeStatus.Found, Read(cluster, leader));
    }

    [Fact]
    public void Deposed_leader_answers_numbered_writes_at_once_and_others_when_their_end_is_known_or_soon()
    {
        ModelCluster cluster = new(3);
        NodeId leader = cluster.Elect();
        cluster.Cut.Add(leader);
        ModelSink numbered = cluster.Send(leader, Numbered());
        ModelSink other = cluster.Send(leader, CommandKind.Set, "k", 0);
        cluster.Settle();
        int ticks = 0;
        while (cluster[leader.Value].Loops!.Group(0).IsLeader)
        {
            Assert.Empty(numbered.Replies);
            cluster.Tick();
            ticks++;
        }

        // One election timeout after the last word of the others it steps down, and says so in the same turn.
        Assert.InRange(ticks, 1, 17);
        Assert.Equal(OutcomeStatus.Unknown, Assert.Single(numbered.Replies).Value.Status);
        Assert.Empty(other.Replies);
        cluster.Tick(33);
        Assert.Equal(OutcomeStatus.Unknown, Assert.Single(other.Replies).Value.Status);
        cluster.Cut.Clear();
        cluster.Tick(100);
        Assert.Single(numbered.Replies);
        Assert.Single(other.Replies);
    }

    [Fact]
    public void Write_without_a_number_is_answered_with_its_end_when_the_next_leader_tells_it()
    {
        ModelCluster cluster = new(3);
        NodeId leader = cluster.Elect();
        cluster.Loses = (from, to, _) => to == leader;
        ModelSink numbered = cluster.Send(leader, Numbered());
        ModelSink other = cluster.Send(leader, CommandKind.Set, "k", 0);
        cluster.Settle();
        while (cluster[leader.Value].Loops!.Group(0).IsLeader)
        {
            cluster.Tick();
        }

        // The others have the entry; nobody has told the old leader.
        Assert.Equal(OutcomeStatus.Unknown, Assert.Single(numbered.Replies).Value.Status);
        cluster.Loses = null;
        for (int i = 0; i < 60 && other.Replies.Count == 0; i++)
        {
            cluster.Tick();
        }

        Assert.Equal(OutcomeStatus.Applied, Assert.Single(other.Replies).Value.Status);
        Assert.Single(numbered.Replies);
    }

    [Fact]
    public void Leadership_is_not_handed_to_a_node_that_may_have_stood_still()
    {
        ModelCluster cluster = new(3);
        cluster.Elect();
        cluster.Tick(100);
        NodeId preferred = new(1);
        Assert.Equal(preferred, cluster.LeaderOf());
        cluster.Cut.Add(preferred);
        NodeId leader = cluster.Elect();
        cluster.Tick(250);
        cluster.Cut.Clear();

        // Ten seconds, as long as such a node refuses sessions.
        for (int i = 0; i < 200; i++)
        {
            cluster.Tick();
            Assert.Equal(leader, cluster.LeaderOf());
        }

        cluster.Tick(200);
        Assert.Equal(preferred, cluster.LeaderOf());
    }

    [Fact]
    public void Node_that_stood_still_does_not_take_leadership_that_is_offered()
    {
        ModelCluster cluster = new(3);
        cluster.Elect();
        cluster.Tick(100);
        NodeId preferred = new(1);
        cluster.Cut.Add(preferred);
        NodeId leader = cluster.Elect();
        cluster.Cut.Clear();
        cluster.Pass(10_001);

        // No leader has seen the standstill of everybody, so that it offers leadership all the same.
        int led = 0;
        for (int i = 0; i < 190; i++)
        {
            cluster.Tick();
            led += cluster[preferred.Value].Loops!.Group(0).IsLeader ? 1 : 0;
        }

        Assert.Equal(0, led);
        Assert.NotEqual(preferred, leader);
    }

    private static byte[] Numbered()
    {
        Command command = new()
        {
            Kind = CommandKind.Set,
            Durability = Durability.Persistent,
            Flags = CommandFlags.Session | CommandFlags.Opening,
            SessionId = 7,
            Sequence = 1,
            Key = "n"u8,
            Value = "v"u8,
        };
        ByteBuffer buffer = ByteBuffer.Rent();
        command.Write(buffer);
        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }

    private static OutcomeStatus Read(ModelCluster cluster, NodeId node)
    {
        ModelSink read = cluster.Send(node, CommandKind.Get, "k", 0);
        cluster.Settle();
        return read.Replies[0].Status;
    }

    /// <summary>
    /// Five nodes whose preferred leader has come back without its directory: it follows, and does not vote.
    /// </summary>
    private static ModelCluster Rejoining()
    {
        ModelCluster cluster = new(5);
        cluster.Elect();
        cluster.Tick(100);
        cluster.Crash(new NodeId(1));
        cluster.Elect();
        cluster.Start(new NodeId(1), VotingRight.Rejoining);
        cluster.Tick(100);
        return cluster;
    }
}
