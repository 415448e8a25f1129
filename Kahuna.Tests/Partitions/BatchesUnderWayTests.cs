using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Partitions;

/// <summary>
/// Under load there is never a moment in which no batch is on its way to the disk: whoever waits for something on it
/// waits for that batch's number.
/// </summary>
public sealed class BatchesUnderWayTests
{
    [Fact]
    public void Node_that_was_rebuilt_may_vote_again_under_load()
    {
        ModelCluster cluster = new(3);
        NodeId leader = cluster.Elect();
        NodeId rebuilt = cluster.Ids.First(id => id != leader);
        cluster.Crash(rebuilt);
        cluster[rebuilt.Value].Log.Behind = 1;
        cluster.Start(rebuilt, VotingRight.Rejoining);
        Load(cluster, 1, 0, ticks: 200, () => cluster[rebuilt.Value].Loops!.Group(0).CanRejoin);
    }

    [Fact]
    public void State_from_another_node_is_installed_while_other_partitions_are_written()
    {
        ModelCluster cluster = new(3, partitions: 2);
        NodeId leader = cluster.Elect();
        cluster.Tick(100);
        leader = cluster.LeaderOf();
        NodeId away = cluster.Ids.First(id => id != leader);
        cluster.Crash(away);
        Load(cluster, 2, 1, ticks: 600, until: null);
        Assert.True(cluster[leader.Value].Loops!.Group(1).Metrics.Stored.Value > 0);
        foreach (NodeId id in cluster.Ids)
        {
            cluster[id.Value].Log.Cut();
        }

        cluster[away.Value].Log.Behind = 1;
        cluster.Start(away);
        Load(cluster, 2, 0, ticks: 400, () =>
            cluster[away.Value].Lines.Exists(static line => line.Contains("is installed", StringComparison.Ordinal)));
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public void State_is_stored_on_a_node_whose_disk_is_the_slowest(bool leads)
    {
        ModelCluster cluster = new(3);
        cluster.Elect();
        cluster.Tick(100);
        NodeId leader = cluster.LeaderOf();
        NodeId slow = leads ? leader : cluster.Ids.First(id => id != leader);

        // A leader proposes nothing while two batches are under way.
        cluster[slow.Value].Log.Behind = leads ? 1 : 2;
        LogIndex stored = default;
        for (int i = 0; i < 2; i++)
        {
            // The others commit ahead of its disk: at no moment is everything that it has applied on its disk.
            Load(cluster, 1, 0, ticks: 600, () => cluster[slow.Value].Loops!.Group(0).Metrics.Stored > stored);
            stored = cluster[slow.Value].Loops!.Group(0).Metrics.Stored;
        }

        Assert.Equal(leader, cluster.LeaderOf());
        Assert.True(
            cluster[slow.Value].Loops!.Group(0) is var partition && partition.Applied > partition.Core.DurableIndex);
    }

    /// <summary>Writes to a partition in every tick until something holds.</summary>
    private static void Load(ModelCluster cluster, int partitions, int partition, int ticks, Func<bool>? until)
    {
        string key = Enumerable.Range(0, 100)
            .Select(static i => $"{i}/key")
            .First(key => InitialPartition.Of(System.Text.Encoding.UTF8.GetBytes(key), partitions) == partition);
        for (int i = 0; i < ticks; i++)
        {
            for (int j = 0; j < 4; j++)
            {
                cluster.Send(cluster.LeaderOf(partition), (CommandKind.Set, key, new string('v', 4_000)));
                cluster.Settle();
            }

            cluster.Tick();
            if (until?.Invoke() == true)
            {
                return;
            }
        }

        Assert.Null(until);
    }
}
