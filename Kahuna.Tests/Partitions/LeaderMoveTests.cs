using Kahuna.Server.Partitions.Loops;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;

namespace Kahuna.Tests.Partitions;

/// <summary>Leadership that an administrator moves, in a cluster that is stepped by hand.</summary>
public sealed class LeaderMoveTests
{
    private static readonly GroupId s_group = GroupId.Of(0, isEphemeral: false);

    [Fact]
    public void Leadership_goes_to_the_wanted_node_and_stays_there_for_a_while()
    {
        ModelCluster cluster = Settled(static options => options with { MoveHoldTicks = 200 });
        NodeId first = cluster.LeaderOf();
        NodeId target = Other(cluster, first);
        LeaderMove move = Move(cluster, first, target);
        cluster.Tick(4);
        Assert.Equal(MoveResult.Left, Answer(move));
        Assert.Equal((target, target), (cluster.LeaderOf(), move.Target));
        cluster.Tick(180);
        Assert.Equal(target, cluster.LeaderOf());

        // The preferred node is the first one, and gets leadership back when the time is over.
        cluster.Tick(200);
        Assert.Equal(first, cluster.LeaderOf());
    }

    [Fact]
    public void A_node_that_gives_leadership_to_the_preferred_one_is_not_waited_for()
    {
        ModelCluster cluster = Settled(static options => options);
        NodeId first = cluster.LeaderOf();
        NodeId target = Other(cluster, first);
        Move(cluster, first, target);
        cluster.Tick(4);
        Assert.Equal(target, cluster.LeaderOf());
        LeaderMove back = new(s_group) { ToPreferred = true };
        Assert.True(cluster[target.Value].Loops!.Move(back));
        cluster.Tick(4);
        Assert.Equal(MoveResult.Left, Answer(back));
        Assert.Equal(first, cluster.LeaderOf());
    }

    [Fact]
    public void A_node_that_does_not_answer_is_not_waited_for()
    {
        ModelCluster cluster = Settled(static options => options);
        NodeId leader = cluster.LeaderOf();
        NodeId target = Other(cluster, leader);
        cluster.Cut.Add(target);
        LeaderMove early = Move(cluster, leader, target);
        LeaderMove second = Move(cluster, leader, target);
        Assert.False(early.Answered.IsCompleted);
        Assert.Equal(MoveResult.Busy, Answer(second));
        cluster.Tick(60);
        Assert.Equal(MoveResult.NotTaken, Answer(early));
        Assert.Equal(leader, cluster.LeaderOf());
        Assert.Equal(MoveResult.Silent, Answer(Move(cluster, leader, target)));
        Assert.False(cluster[leader.Value].Loops!.Group(0).Core.IsTransferring);
    }

    [Fact]
    public void The_reason_is_told_when_leadership_cannot_move()
    {
        ModelCluster cluster = Settled(static options => options);
        NodeId leader = cluster.LeaderOf();
        NodeId follower = Other(cluster, leader);
        Assert.Equal(MoveResult.Leads, Answer(Move(cluster, leader, leader)));
        Assert.Equal(MoveResult.NoVoter, Answer(Move(cluster, leader, new NodeId(9))));
        Assert.Equal(MoveResult.NotLeader, Answer(Move(cluster, follower, leader)));
        cluster[leader.Value].Loops!.Group(0).Forget(follower);
        Assert.Equal(MoveResult.Behind, Answer(Move(cluster, leader, follower)));
        cluster[leader.Value].Loops!.Loops[0].PostDrain();
        Assert.Equal(MoveResult.Draining, Answer(Move(cluster, leader, follower)));
        Assert.Equal(leader.Value, cluster.Ids[0].Value);
    }

    private static ModelCluster Settled(Func<LoopOptions, LoopOptions> configure)
    {
        ModelCluster cluster = new(3, configure: configure);
        cluster.Elect();
        cluster.Tick(100);
        return cluster;
    }

    private static NodeId Other(ModelCluster cluster, NodeId leader) => cluster.Ids.First(id => id != leader);

    private static LeaderMove Move(ModelCluster cluster, NodeId at, NodeId to)
    {
        LeaderMove move = new(s_group) { To = to };
        Assert.True(cluster[at.Value].Loops!.Move(move));
        cluster.Settle();
        return move;
    }

    private static MoveResult Answer(LeaderMove move)
    {
        Assert.True(move.Answered.IsCompletedSuccessfully);
        return move.Answered.GetAwaiter().GetResult();
    }
}
