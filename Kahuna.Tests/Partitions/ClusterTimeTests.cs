using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Partitions;

/// <summary>Cluster time goes on over changes of leaders, also where nobody writes.</summary>
public sealed class ClusterTimeTests
{
    private const int SecondTicks = 20;

    [Fact]
    public void Time_goes_on_when_leadership_is_handed_over_in_a_quiet_partition()
    {
        NodeId preferred = new(1);
        ModelCluster cluster = new(3, configure: options => options with { PreferredLeader = _ => preferred });
        cluster.Elect();
        cluster.Tick(100);
        Set(cluster, ttlMs: 60_000);
        for (int i = 0; i < 5; i++)
        {
            // Sooner than once a minute, and nothing else happens.
            preferred = new NodeId((ushort)((i % 3) + 1));
            cluster.Tick(15 * SecondTicks);
            Assert.Equal(preferred, cluster.LeaderOf());
        }

        Assert.Equal(OutcomeStatus.NotFound, Get(cluster));
    }

    [Fact]
    public void Time_goes_back_by_a_minute_at_most_when_a_leader_crashes()
    {
        ModelCluster cluster = new(3, configure: options => options with { PreferredLeader = _ => NodeId.None });
        cluster.Elect();
        Set(cluster, ttlMs: 500_000);
        for (int i = 0; i < 2; i++)
        {
            cluster.Tick(230 * SecondTicks);
            NodeId crashed = cluster.LeaderOf();
            cluster.Crash(crashed);
            cluster.Elect();
            cluster.Start(crashed);
        }

        // 460 s have passed, of which each crash has taken back less than a minute.
        cluster.Tick(165 * SecondTicks);
        Assert.Equal(OutcomeStatus.NotFound, Get(cluster));
    }

    private static void Set(ModelCluster cluster, long ttlMs)
    {
        cluster.Send(cluster.LeaderOf(), CommandKind.Set, "k", ttlMs);
        cluster.Settle();
    }

    private static OutcomeStatus Get(ModelCluster cluster)
    {
        ModelSink read = cluster.Send(cluster.LeaderOf(), CommandKind.Get, "k", 0);
        cluster.Settle();
        return read.Replies[0].Status;
    }
}
