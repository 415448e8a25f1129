using Kahuna.Client.Wire.Commands;
using Kahuna.Client.Wire.Outcomes;
using Kahuna.Client.Wire.Routing;
using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;

namespace Kahuna.Tests.Partitions;

/// <summary>How much a partition takes in, how fast it gives back what has expired, and what becomes of one that cannot be loaded.</summary>
public sealed class StateGrowthTests
{
    private static readonly string s_large = new('x', 200_000);

    [Fact]
    public void Keys_are_removed_at_the_rate_at_which_they_fall_due()
    {
        const int PerTick = 1_000;
        const int LifetimeMs = 200;
        ModelCluster cluster = new(1);
        NodeId leader = cluster.Elect();
        StateMachine state = cluster[leader.Value].Loops!.Partition(0).State;
        int written = 0;
        for (int tick = 0; tick < 80; tick++)
        {
            for (int i = 0; i < PerTick; i++)
            {
                cluster.Send(leader, CommandKind.Set, $"key/{written++}", LifetimeMs);
            }

            cluster.Tick();
            Assert.InRange(state.Counts.Keys, 0, PerTick * ((LifetimeMs / 50) + 3));
        }

        cluster.Tick(10);
        Assert.Equal(0, state.Counts.Keys);
    }

    [Fact]
    public void Above_the_memory_that_it_may_take_up_a_leader_refuses_what_takes_more()
    {
        ModelCluster cluster = new(1, configure: static options => options with { StateLimits = new StateLimits { HistoryPerKey = 0 } }, persistentBytesMax: 8_000_000);
        NodeId leader = cluster.Elect();
        int written = Fill(cluster, leader);
        Assert.InRange(written, 20, 45);
        Assert.Equal(OutcomeStatus.MemoryFull, Do(cluster, leader, CommandKind.Increment, "counter", ""));
        Assert.Equal(OutcomeStatus.Found, Do(cluster, leader, CommandKind.Get, "key/0", ""));
        cluster.Send(leader, CommandKind.Extend, "key/0", 60_000);
        for (int i = 0; i < 10; i++)
        {
            Assert.Equal(OutcomeStatus.Applied, Do(cluster, leader, CommandKind.Delete, $"key/{i}", ""));
        }

        cluster.Tick();
        Assert.Equal(OutcomeStatus.Applied, Do(cluster, leader, CommandKind.Set, "key/0", s_large));
    }

    [Fact]
    public void A_leader_refuses_new_data_before_slabs_run_out()
    {
        StateLimits limits = new() { HistoryPerKey = 0, SlabsMax = 60, SlabsReserved = 20 };
        ModelCluster cluster = new(3, configure: options => options with { StateLimits = limits });
        cluster.Elect();
        cluster.Tick(100);
        NodeId leader = cluster.LeaderOf();
        int written = Fill(cluster, leader);
        Assert.InRange(written, limits.SlabsMax - limits.SlabsReserved - 5, limits.SlabsMax - 5);
        Assert.Equal(OutcomeStatus.Applied, Do(cluster, leader, CommandKind.Delete, "key/3", ""));
        Assert.Equal(OutcomeStatus.Applied, Do(cluster, leader, CommandKind.Delete, "key/4", ""));
        cluster.Tick(4);
        Assert.Equal(OutcomeStatus.Applied, Do(cluster, leader, CommandKind.Set, "key/3", s_large));
        Assert.All(cluster.Ids, id => Assert.Empty(cluster[id.Value].Failures));
    }

    [Fact]
    public void A_partition_that_cannot_be_loaded_stops_alone()
    {
        ModelCluster cluster = new(3, partitions: 2, configure: static options => options with { StateLimits = new StateLimits { SlabsReserved = 0 } });
        cluster.Elect();
        string[] keys = [.. Enumerable.Range(0, 100).Select(i => $"b{i}/k")];
        string bad = keys.First(key => Partition(key) == 0);
        string good = keys.First(key => Partition(key) == 1);
        for (int i = 0; i < 30; i++)
        {
            Assert.Equal(OutcomeStatus.Applied, Do(cluster, cluster.LeaderOf(0), CommandKind.Set, $"{bad}{i}", s_large));
        }

        Assert.Equal(OutcomeStatus.Applied, Do(cluster, cluster.LeaderOf(1), CommandKind.Set, good, "x"));
        cluster.Tick(10);

        // What it has applied does not fit any more, on one node.
        NodeId node = cluster.LeaderOf(0);
        cluster.Crash(node);
        cluster.Configure = static options => options with { StateLimits = new StateLimits { SlabsMax = 10, SlabsReserved = 0 } };
        cluster.Start(node);
        Partition stopped = cluster[node.Value].Loops!.Partition(0);
        Assert.True(stopped.Failed);
        Assert.IsType<InvariantException>(Assert.Single(cluster[node.Value].Failures));
        Assert.Contains(stopped.Group, cluster[node.Value].Log.Abandoned);
        Assert.DoesNotContain(cluster[node.Value].Loops!.Partition(1).Group, cluster[node.Value].Log.Abandoned);
        cluster.Elect();
        Assert.NotEqual(node, cluster.LeaderOf(0));
        Assert.Equal((RaftRole.Follower, NodeId.None, false), (stopped.Status.Role, stopped.Status.Leader, stopped.Status.Serving));
        Assert.Equal(OutcomeStatus.Applied, Do(cluster, cluster.LeaderOf(1), CommandKind.Set, good, "y"));
        cluster.Tick(10);
        Assert.Equal(OutcomeStatus.Internal, Do(cluster, node, CommandKind.Get, $"{bad}0", ""));
        Assert.Single(cluster.Ids.Select(id => cluster[id.Value].Loops!.Partition(1).State.Digest).Distinct());
    }

    [Fact]
    public void A_partition_that_breaks_a_rule_is_no_leader_any_more()
    {
        ModelCluster cluster = new(1, configure: static options => options with { StateLimits = new StateLimits { SlabsMax = 10, SlabsReserved = 0 } });
        NodeId node = cluster.Elect();
        cluster.Send(node, [.. Enumerable.Range(0, 20).Select(i => (CommandKind.Set, $"key/{i}", s_large))]);
        cluster.Tick(2);
        Partition stopped = cluster[node.Value].Loops!.Partition(0);
        Assert.True(stopped.Failed);
        Assert.False(stopped.IsLeader);
        Assert.Equal((RaftRole.Follower, NodeId.None, false), (stopped.Status.Role, stopped.Status.Leader, stopped.Status.Serving));
        Assert.Contains(stopped.Group, cluster[node.Value].Log.Abandoned);
    }

    /// <summary>Writes keys until one is refused; how many were taken.</summary>
    private static int Fill(ModelCluster cluster, NodeId leader)
    {
        for (int written = 0; written < 200; written++)
        {
            OutcomeStatus status = Do(cluster, leader, CommandKind.Set, $"key/{written}", s_large);
            cluster.Tick(2);
            if (status == OutcomeStatus.MemoryFull)
            {
                return written;
            }

            Assert.Equal(OutcomeStatus.Applied, status);
        }

        return int.MaxValue;
    }

    private static OutcomeStatus Do(ModelCluster cluster, NodeId node, CommandKind kind, string key, string value)
    {
        ModelSink sink = cluster.Send(node, (kind, key, value));
        cluster.Settle();
        return sink.Replies[0].Status;
    }

    private static int Partition(string key) => KeyRouting.Partition(System.Text.Encoding.UTF8.GetBytes(key), 2);
}
