using Kahuna.Client.Locks;
using Kahuna.Tests.Simulation.Nodes;

namespace Kahuna.Tests.Simulation;

/// <summary>
/// What happens to a lock and its queue: the table of docs/guarantees.md, line by line, at both levels of durability.
/// </summary>
public sealed class LockGuaranteesTests
{
    private const string Name = "lock";

    private static readonly TimeSpan s_lease = TimeSpan.FromSeconds(50);
    private static readonly TimeSpan s_long = TimeSpan.FromMinutes(30);

    [Theory]
    [InlineData(3, Durability.Persistent)]
    [InlineData(3, Durability.Ephemeral)]
    [InlineData(5, Durability.Ephemeral)]
    public void A_minority_that_crashes_takes_no_lock_and_no_place_in_a_queue_with_it(int nodes, Durability level)
    {
        ScriptedCluster cluster = new(nodes);
        LockHandle held = Hold(cluster, level);
        Task<LockHandle> first = cluster.BeginAcquire(Name, level, s_lease, s_long);
        cluster.Run(1);
        Task<LockHandle> second = cluster.BeginAcquire(Name, level, s_lease, s_long);
        cluster.Run(1);
        SimNode[] minority =
            [.. cluster.Nodes.OrderByDescending(node => node == cluster.Leader(level)).Take((nodes - 1) / 2)];
        foreach (SimNode node in minority)
        {
            node.Crash(power: true);
        }

        cluster.Run(5);
        LockDescription there = cluster.Look(Name, level)!;
        Assert.Equal((held.Token, 2), (there.Holders[0].Token, there.WaiterCount));
        Assert.InRange(there.Holders[0].Remaining, s_lease - TimeSpan.FromSeconds(8), s_lease);
        Assert.False(first.IsCompleted || second.IsCompleted);

        cluster.Start(minority);
        cluster.Settle();
        Assert.True(cluster.Release(held));
        cluster.Run(1);
        Assert.True(first.IsCompletedSuccessfully && !second.IsCompleted);
        Assert.True(cluster.Await(first).Token > held.Token);
        Assert.True(cluster.Release(cluster.Await(first)));
        cluster.Run(1);
        Assert.True(cluster.Await(second).Token > cluster.Await(first).Token);
    }

    [Theory]
    [InlineData(Durability.Persistent, true)]
    [InlineData(Durability.Persistent, false)]
    [InlineData(Durability.Ephemeral, true)]
    [InlineData(Durability.Ephemeral, false)]
    public void A_leader_that_is_paused_leaves_nobody_who_believes_to_have_it_and_has_not(Durability level, bool renews)
    {
        ScriptedCluster cluster = new(3);
        LockHandle held = cluster.Await(cluster.BeginAcquire(Name, level, TimeSpan.FromSeconds(5), s_long, renews));
        Task<LockHandle> next = cluster.BeginAcquire(Name, level, s_lease, s_long);
        cluster.Run(1);
        SimNode leader = cluster.Leader(level);
        leader.Pause();
        for (int i = 0; i < 400; i++)
        {
            cluster.Run(0.05);
            Assert.False(next.IsCompleted && held.Remaining > TimeSpan.Zero);
        }

        // Who can reach the next leader renews; who does not is followed by the next.
        Assert.Equal(renews, held.Remaining > TimeSpan.Zero);
        Assert.Equal(!renews, next.IsCompletedSuccessfully);
        leader.Resume();
        cluster.Settle();
        Assert.Equal((renews ? held : cluster.Await(next)).Token, cluster.Look(Name, level)!.Holders[0].Token);
    }

    [Theory]
    [InlineData(Durability.Persistent, 2)]
    [InlineData(Durability.Persistent, 3)]
    [InlineData(Durability.Ephemeral, 2)]
    [InlineData(Durability.Ephemeral, 3)]
    public void What_a_majority_has_forgotten_is_granted_again_when_no_lease_can_go_on(Durability level, int crashed)
    {
        ScriptedCluster cluster = new(3);
        LockHandle held = Hold(cluster, level);
        SimNode[] majority = [.. cluster.Nodes.Take(crashed)];
        foreach (SimNode node in majority)
        {
            node.Crash(power: true);
        }

        cluster.Run(1);
        cluster.Start(majority);
        cluster.Settle();
        Assert.Equal(level == Durability.Persistent ? held.Token : null, cluster.Look(Name, level)?.Holders[0].Token);
        Task<LockHandle> next = cluster.BeginAcquire(Name, level, s_lease, s_long);
        while (held.Remaining > TimeSpan.Zero)
        {
            cluster.Run(0.05);
            Assert.False(next.IsCompleted);
        }

        cluster.Run(70);
        Assert.True(cluster.Await(next).Token > held.Token);
    }

    private static LockHandle Hold(ScriptedCluster cluster, Durability level) =>
        cluster.Await(cluster.BeginAcquire(Name, level, s_lease, s_long));
}
