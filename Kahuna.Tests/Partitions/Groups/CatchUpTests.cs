using Kahuna.Server.Cluster;
using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;

namespace Kahuna.Tests.Partitions.Groups;

/// <summary>When a follower counts as caught up, and what a node says of itself meanwhile.</summary>
public sealed class CatchUpTests
{
    private readonly CatchUp _catchUp = new(nearTicks: 20, farTicks: 200);

    [Fact]
    public void Follower_that_lacks_nothing_has_caught_up_at_once()
    {
        Tick(7, 7);
        Assert.True(_catchUp.IsCaughtUp);
    }

    [Fact]
    public void Follower_that_lacks_a_lot_has_not_until_it_is_a_second_behind()
    {
        for (int i = 0; i < 100; i++)
        {
            Tick(10, 1_000);
            Assert.False(_catchUp.IsCaughtUp);
        }

        // There, but the leader has gone on meanwhile.
        for (ulong i = 0; i < 50; i++)
        {
            Tick(1_000 + i, 2_000);
            Assert.False(_catchUp.IsCaughtUp);
        }

        Tick(2_000, 2_010);
        Assert.False(_catchUp.IsCaughtUp);
        Tick(2_010, 2_020);
        Assert.True(_catchUp.IsCaughtUp);
    }

    [Fact]
    public void Follower_that_falls_behind_lags_only_after_a_while()
    {
        Tick(7, 7);
        Tick(7, 8);
        for (int i = 0; i < 199; i++)
        {
            Tick(7, 100);
            Assert.True(_catchUp.IsCaughtUp);
        }

        Tick(7, 100, times: 2);
        Assert.False(_catchUp.IsCaughtUp);
    }

    [Fact]
    public void Node_that_lags_in_one_group_is_not_ready()
    {
        ClusterView view = new(new ClusterIdentity("c", new NodeId(2), "1", 2, [(new NodeId(2), new Uri("https://n2:1"))]));
        ILeadershipSink sink = view;
        PartitionStatus near = new(RaftRole.Follower, new NodeId(1), new Term(3), Serving: true, Epoch.None);
        sink.LeadershipChanged(0, near);
        sink.LeadershipChanged(1, near with { Lags = true });
        Assert.False(view.IsReady(out string reason));
        Assert.Contains("caught up", reason, StringComparison.Ordinal);
        sink.LeadershipChanged(1, near);
        Assert.True(view.IsReady(out _));
    }

    [Fact]
    public void Node_that_comes_back_is_ready_when_it_has_what_the_others_wrote_meanwhile()
    {
        ModelCluster cluster = new(3);
        NodeId leader = cluster.Elect();
        NodeId follower = cluster.Ids.Last(id => id != leader);
        cluster.Tick(2);
        Assert.False(Status(cluster, follower).Lags);
        cluster.Crash(follower);
        for (int i = 0; i < 50; i++)
        {
            cluster.Send(leader, Kahuna.Wire.Commands.CommandKind.Set, $"k{i}", 0);
            cluster.Settle();
        }

        // Heartbeats reach it, and appends with entries do not.
        cluster.Loses = (_, to, frame) => to == follower && frame.Length > 4 * PeerFrame.MessageBytes;
        cluster.Start(follower);
        cluster.Tick(100);
        Assert.Equal((true, true), (Status(cluster, follower).Serving, Status(cluster, follower).Lags));
        cluster.Loses = null;
        cluster.Tick(100);
        Assert.Equal((true, false), (Status(cluster, follower).Serving, Status(cluster, follower).Lags));
    }

    private static PartitionStatus Status(ModelCluster cluster, NodeId node) =>
        cluster[node.Value].Loops!.Group(0).Status;

    private void Tick(ulong reached, ulong committed, int times = 1)
    {
        for (int i = 0; i < times; i++)
        {
            _catchUp.Tick(new LogIndex(reached), new LogIndex(committed));
        }
    }
}
