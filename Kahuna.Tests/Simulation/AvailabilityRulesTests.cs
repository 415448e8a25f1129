using Kahuna.Server.Partitions.Groups;
using Kahuna.Tests.Simulation.Nodes;

namespace Kahuna.Tests.Simulation;

/// <summary>What the rule of availability takes for service.</summary>
public sealed class AvailabilityRulesTests
{
    [Fact]
    public void Group_that_commits_in_a_new_epoch_is_served_although_the_indexes_of_the_last_one_were_higher()
    {
        ScriptedCluster cluster = new(3);
        for (int i = 0; i < 50; i++)
        {
            Assert.True(cluster.Set("k", "v", Durability.Ephemeral));
        }

        Assert.False(LooksQuietInFlight(cluster), "what is seen for the first time is a change");
        Assert.True(LooksQuietInFlight(cluster));
        Assert.True(LooksQuietInFlight(cluster));
        ulong epoch = cluster.Epoch;
        foreach (SimNode node in cluster.Nodes)
        {
            node.Crash(power: true);
        }

        cluster.Start(cluster.Nodes);
        cluster.Settle();
        Assert.True(cluster.Epoch > epoch);
        Assert.False(LooksQuietInFlight(cluster), "the nodes were started again");
        Assert.True(LooksQuietInFlight(cluster));
        Assert.True(LooksQuietInFlight(cluster));
    }

    /// <summary>The rule looks while the leader has something that is not committed.</summary>
    private static bool LooksQuietInFlight(ScriptedCluster cluster)
    {
        Group leader = cluster.Leader(Durability.Ephemeral).Loops!.Group(cluster.Slot(Durability.Ephemeral));
        Task<bool> set = cluster.BeginSet("k", "v", Durability.Ephemeral);
        while (leader.Core.LastIndex == leader.Core.CommitIndex)
        {
            cluster.Run(0.000_05);
        }

        bool isQuiet = cluster.LooksQuiet();
        Assert.True(cluster.Await(set));
        return isQuiet;
    }
}
