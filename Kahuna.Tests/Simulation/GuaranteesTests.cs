using Kahuna.Server.Primitives;
using Kahuna.Tests.Simulation.Nodes;

namespace Kahuna.Tests.Simulation;

/// <summary>What survives what: the table of docs/guarantees.md, line by line, at both levels of durability.</summary>
public sealed class GuaranteesTests
{
    [Theory]
    [InlineData(3, true)]
    [InlineData(3, false)]
    [InlineData(5, true)]
    public void A_minority_that_crashes_takes_nothing_with_it(int nodes, bool power) => Look(nodes, cluster =>
    {
        // The leader of the ephemeral keys among them.
        SimNode[] minority =
        [
            .. cluster.Nodes.OrderByDescending(node => node == cluster.Leader(Durability.Ephemeral))
                .Take((nodes - 1) / 2),
        ];
        foreach (SimNode node in minority)
        {
            node.Crash(power);
        }

        cluster.Run(5);
        AssertKept(cluster);
        cluster.Start(minority);
    }, kept: true);

    [Fact]
    public void Paused_nodes_take_nothing_with_them() => Look(3, cluster =>
    {
        foreach (SimNode node in cluster.Nodes)
        {
            node.Pause();
        }

        cluster.Run(300);
        foreach (SimNode node in cluster.Nodes)
        {
            node.Resume();
        }
    }, kept: true);

    [Fact]
    public void Nodes_that_are_cut_off_take_nothing_with_them() => Look(3, cluster =>
    {
        cluster.CutAll(true);
        cluster.Run(300);
        cluster.CutAll(false);
    }, kept: true);

    [Fact]
    public void A_rolling_restart_loses_nothing() => Look(3, cluster =>
    {
        foreach (SimNode node in cluster.Nodes)
        {
            node.Crash(power: false);
            cluster.Run(1);
            cluster.Start(node);
            cluster.Settle();
        }
    }, kept: true);

    [Fact]
    public void A_lost_disk_loses_nothing() => Look(3, cluster =>
    {
        SimNode node = cluster.Leader(Durability.Ephemeral);
        node.Crash(power: true);
        node.Wipe();
        cluster.Run(5);
        cluster.Start(node);
    }, kept: true);

    [Theory]
    [InlineData(3, 2)]
    [InlineData(3, 3)]
    [InlineData(5, 3)]
    [InlineData(1, 1)]
    public void What_a_majority_has_forgotten_is_lost_as_a_whole_and_a_new_epoch_begins(int nodes, int crashed) =>
        Look(nodes, cluster =>
    {
        SimNode[] majority = [.. cluster.Nodes.Take(crashed)];
        foreach (SimNode node in majority)
        {
            node.Crash(power: true);
        }

        cluster.Run(1);
        cluster.Start(majority);
    }, kept: false);

    [Theory]
    [InlineData(0, 2)]
    [InlineData(2, 0)]
    [InlineData(1, 2)]
    public void A_node_that_crashes_while_another_is_paused_takes_nothing_with_it(int crashed, int paused) =>
        Look(3, cluster =>
    {
        SimNode[] nodes = [.. cluster.Nodes.OrderByDescending(node => node == cluster.Leader(Durability.Ephemeral))];
        nodes[crashed].Crash(power: false);
        nodes[paused].Pause();
        cluster.Run(1);
        cluster.Start(nodes[crashed]);
        cluster.Run(120);
        nodes[paused].Resume();
    }, kept: true);

    [Theory]
    [InlineData(0, 2)]
    [InlineData(2, 0)]
    public void A_node_that_crashes_while_another_is_cut_off_takes_nothing_with_it(int crashed, int cut) =>
        Look(3, cluster =>
    {
        SimNode[] nodes = [.. cluster.Nodes.OrderByDescending(node => node == cluster.Leader(Durability.Ephemeral))];
        nodes[crashed].Crash(power: true);
        cluster.CutPeers(nodes[cut], true);
        cluster.Run(1);
        cluster.Start(nodes[crashed]);
        cluster.Run(120);
        cluster.CutPeers(nodes[cut], false);
    }, kept: true);

    [Fact]
    public void A_lost_disk_while_another_node_is_paused_loses_nothing() => Look(3, cluster =>
    {
        SimNode[] nodes = [.. cluster.Nodes.OrderByDescending(node => node == cluster.Leader(Durability.Ephemeral))];
        nodes[0].Crash(power: true);
        nodes[0].Wipe();
        nodes[2].Pause();
        cluster.Run(1);
        cluster.Start(nodes[0]);
        cluster.Run(120);
        nodes[2].Resume();
    }, kept: true);

    [Fact]
    public void Of_five_nodes_two_may_crash_while_another_is_paused() => Look(5, cluster =>
    {
        SimNode[] nodes = [.. cluster.Nodes.OrderByDescending(node => node == cluster.Leader(Durability.Ephemeral))];
        nodes[0].Crash(power: false);
        nodes[1].Crash(power: true);
        nodes[4].Pause();
        cluster.Run(1);
        cluster.Start(nodes[0], nodes[1]);
        cluster.Run(90);
        nodes[4].Resume();
    }, kept: true);

    [Fact]
    public void A_rolling_restart_beside_paused_nodes_loses_nothing() => Look(3, cluster =>
    {
        foreach (SimNode node in cluster.Nodes)
        {
            SimNode paused = cluster.Nodes.First(other => other != node);
            node.Crash(power: false);
            paused.Pause();
            cluster.Run(1);
            cluster.Start(node);
            cluster.Run(70);
            paused.Resume();
            cluster.Settle();
        }
    }, kept: true);

    [Fact]
    public void With_one_node_gone_and_one_that_has_nothing_the_third_gives_up_after_a_minute() => Look(3, cluster =>
    {
        cluster.Nodes[2].Crash(power: true);
        cluster.Run(2);
        cluster.Nodes[1].Crash(power: true);

        // Long enough that the leader, which could restore it, has stepped down.
        cluster.Run(3);
        cluster.Start(cluster.Nodes[1]);
        cluster.Run(50);
        Assert.Equal(1UL, cluster.Epoch);
        cluster.Run(60);
        Assert.Equal(2UL, cluster.Epoch);
        cluster.Start(cluster.Nodes[2]);
    }, kept: false, patienceMs: 60_000);

    [Fact]
    public void With_patience_for_ever_nothing_is_given_up_that_a_majority_may_have() => Look(3, cluster =>
    {
        SimNode[] nodes = [.. cluster.Nodes.OrderByDescending(node => node == cluster.Leader(Durability.Ephemeral))];
        nodes[0].Crash(power: false);
        nodes[2].Pause();
        cluster.Run(1);
        cluster.Start(nodes[0]);
        cluster.Run(3_600);
        Assert.Equal(1UL, cluster.Epoch);
        nodes[2].Resume();
    }, kept: true, patienceMs: int.MaxValue);

    [Fact]
    public void A_node_that_missed_the_end_of_an_epoch_learns_of_it_by_a_snapshot_too() => Look(3, cluster =>
    {
        SimNode missing = cluster.Nodes[2];
        SimNode[] others = [.. cluster.Nodes.Take(2)];
        missing.Crash(power: false);
        cluster.Run(2);
        foreach (SimNode node in others)
        {
            node.Crash(power: false);
        }

        cluster.Start(others);
        cluster.Run(30);
        for (int i = 0; i < 60; i++)
        {
            Assert.True(cluster.Set("long", new string('x', 500 + i), Durability.Persistent));
            cluster.Run(0.2);
        }

        GroupId meta = GroupId.Meta;
        Assert.All(others, node =>
            Assert.True(node.Loops!.Group(2).Id == meta && node.Loops.Group(2).Core.LogStart.Value > 0));
        cluster.Start(missing);
    }, kept: false);

    [Fact]
    public void A_node_that_was_cut_off_at_the_end_of_an_epoch_learns_of_it_by_a_snapshot()
    {
        // It is not started again, so nothing more is recorded of it afterwards.
        SimNode? missing = null;
        Look(3, cluster =>
        {
            missing = cluster.Nodes[2];
            SimNode[] others = [.. cluster.Nodes.Take(2)];
            cluster.CutPeers(missing, isCut: true);
            cluster.Run(2);
            foreach (SimNode node in others)
            {
                node.Crash(power: false);
            }

            cluster.Start(others);
            cluster.Run(30);
            for (int i = 0; i < 60; i++)
            {
                Assert.True(cluster.Set("long", new string('x', 500 + i), Durability.Persistent));
                cluster.Run(0.2);
            }

            Assert.All(others, node => Assert.True(node.Loops!.Group(2).Core.LogStart.Value > 0));
            cluster.CutPeers(missing, isCut: false);
        }, kept: false);
        Assert.Equal(2UL, missing!.Loops!.Group(1).Status.Epoch.Value);
    }

    private static void Look(int nodes, Action<ScriptedCluster> happening, bool kept, int patienceMs = 600_000)
    {
        ScriptedCluster cluster = new(nodes, patienceMs: patienceMs);
        for (int i = 0; i < 10; i++)
        {
            Assert.True(cluster.Set($"key{i}", $"persistent {i}", Durability.Persistent));
            Assert.True(cluster.Set($"key{i}", $"ephemeral {i}", Durability.Ephemeral));
        }

        happening(cluster);
        cluster.Settle();
        Assert.Equal(kept ? 1UL : 2UL, cluster.Epoch);
        for (int i = 0; i < 10; i++)
        {
            Assert.Equal($"persistent {i}", cluster.Get($"key{i}", Durability.Persistent));
            Assert.Equal(kept ? $"ephemeral {i}" : null, cluster.Get($"key{i}", Durability.Ephemeral));
        }

        Assert.True(cluster.Set("key0", "later", Durability.Ephemeral));
        Assert.Equal("later", cluster.Get("key0", Durability.Ephemeral));
    }

    private static void AssertKept(ScriptedCluster cluster)
    {
        Assert.Equal("persistent 3", cluster.Get("key3", Durability.Persistent));
        Assert.Equal("ephemeral 3", cluster.Get("key3", Durability.Ephemeral));
    }
}
