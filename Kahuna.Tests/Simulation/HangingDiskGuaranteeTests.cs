using Kahuna.Tests.Simulation.Nodes;

namespace Kahuna.Tests.Simulation;

/// <summary>
/// A majority that can talk and sync serves within three seconds, whatever the disks of the others do.
/// </summary>
public sealed class HangingDiskGuaranteeTests
{
    private const double SecondsMax = 3;

    [Fact]
    public void Leader_whose_disk_hangs() => Serves(3, cluster => [cluster.Leader(Durability.Persistent)]);

    [Fact]
    public void Follower_whose_disk_hangs() =>
        Serves(3, cluster => [cluster.Nodes.First(node => node != cluster.Leader(Durability.Persistent))]);

    [Fact]
    public void Leader_and_a_follower_of_five() => Serves(5, cluster =>
        [
            cluster.Leader(Durability.Persistent),
            cluster.Nodes.First(node => node != cluster.Leader(Durability.Persistent)),
        ]);

    private static void Serves(int nodes, Func<ScriptedCluster, SimNode[]> choose)
    {
        ScriptedCluster cluster = new(nodes);
        for (int i = 0; i < 10; i++)
        {
            Assert.True(cluster.Set($"key{i}", "before", Durability.Persistent));
            Assert.True(cluster.Set($"key{i}", "before", Durability.Ephemeral));
        }

        SimNode[] hung = choose(cluster);
        foreach (SimNode node in hung)
        {
            node.Hung.Set(true);
        }

        for (int i = 0; i < 60; i++)
        {
            double began = cluster.Seconds;
            Assert.True(cluster.Set($"key{i % 10}", $"meanwhile {i}", Durability.Persistent));
            Assert.True(cluster.Set($"key{i % 10}", $"meanwhile {i}", Durability.Ephemeral));
            Assert.Equal($"meanwhile {i}", cluster.Get($"key{i % 10}", Durability.Persistent));
            Assert.InRange(cluster.Seconds - began, 0, SecondsMax);
            cluster.Run(0.2);
        }

        foreach (SimNode node in hung)
        {
            node.Hung.Set(false);
        }

        cluster.Run(5);
        cluster.Settle();
        Assert.Equal("meanwhile 59", cluster.Get("key9", Durability.Persistent));
    }
}
