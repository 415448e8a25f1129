using Kahuna.Client.Locks;
using Kahuna.Tests.Simulation.Nodes;

namespace Kahuna.Tests.Simulation;

/// <summary>
/// How long a caller waits when the leader of its key fails, in virtual time: a caller that makes one call after the
/// other, while the leader is killed, stopped, cut off from its peers, or from everybody. The limits are those of
/// docs/performance.md.
/// </summary>
public sealed class FailoverTests
{
    private const int MedianMsMax = 1_500;
    private const int LongestMsMax = 2_500;
    private const int Rounds = 31;

    /// <summary>A lock's lease that is shorter than the pause of its leader.</summary>
    private static readonly TimeSpan s_lease = TimeSpan.FromSeconds(4);

    [Theory]
    [InlineData(Durability.Persistent)]
    [InlineData(Durability.Ephemeral)]
    public void Killed_leader(Durability durability) =>
        AssertShort(durability, static (_, leader) => leader.Crash(power: false), static (cluster, leader) =>
            cluster.Start(leader));

    [Theory]
    [InlineData(Durability.Persistent)]
    [InlineData(Durability.Ephemeral)]
    public void Stopped_leader(Durability durability) =>
        AssertShort(durability, static (_, leader) => leader.Pause(), static (_, leader) => leader.Resume());

    [Theory]
    [InlineData(Durability.Persistent)]
    [InlineData(Durability.Ephemeral)]
    public void Leader_that_only_clients_reach(Durability durability) =>
        AssertShort(durability, static (cluster, leader) => cluster.CutPeers(leader, true), static (cluster, leader) =>
            cluster.CutPeers(leader, false));

    [Theory]
    [InlineData(Durability.Persistent)]
    [InlineData(Durability.Ephemeral)]
    public void Leader_that_nobody_reaches(Durability durability) =>
        AssertShort(durability, static (cluster, leader) => Isolate(cluster, leader, true), static (cluster, leader) =>
            Isolate(cluster, leader, false));

    [Fact]
    public void Client_that_does_not_reach_the_leader_goes_through_another_node()
    {
        ScriptedCluster cluster = new(3);
        SimNode leader = cluster.Leader(Durability.Persistent);
        Assert.True(cluster.Set("k", "before", Durability.Persistent));
        cluster.CutClient(leader, true);
        Assert.InRange(Longest(cluster, Durability.Persistent, 3_000), 1, LongestMsMax);

        // Once it knows, no call waits, and reads and writes are those of the leader, which has not changed.
        Assert.InRange(Longest(cluster, Durability.Persistent, 20_000), 0, 200);
        Assert.Same(leader, cluster.Leader(Durability.Persistent));
        Assert.True(cluster.Set("k", "through another node", Durability.Persistent));
        Assert.Equal("through another node", cluster.Get("k", Durability.Persistent));
        cluster.CutClient(leader, false);
        Assert.InRange(Longest(cluster, Durability.Persistent, 20_000), 0, LongestMsMax);
    }

    [Fact]
    public void Leader_that_comes_back_from_a_standstill_does_not_take_leadership_back_while_it_refuses_sessions()
    {
        ScriptedCluster cluster = new(3);
        SimNode before = cluster.Leader(Durability.Persistent);
        before.Pause();
        cluster.Run(14);
        Assert.True(cluster.Set("k", "v", Durability.Persistent));
        SimNode leader = cluster.Leader(Durability.Persistent);
        before.Resume();
        for (int i = 0; i < 95; i++)
        {
            cluster.Run(0.1);
            Assert.Same(leader, cluster.Leader(Durability.Persistent));
        }
    }

    [Theory]
    [InlineData(Durability.Persistent)]
    [InlineData(Durability.Ephemeral)]
    public void Waiting_claim_is_granted_in_its_turn_over_a_stopped_leader(Durability durability)
    {
        ScriptedCluster cluster = new(3);
        TimeSpan wait = TimeSpan.FromMinutes(5);
        LockHandle held = cluster.Await(cluster.BeginAcquire("lock", durability, s_lease, wait));
        Task<LockHandle> first = cluster.BeginAcquire("lock", durability, s_lease, wait);
        cluster.Run(0.5);
        Task<LockHandle> second = cluster.BeginAcquire("lock", durability, s_lease, wait);
        cluster.Run(0.5);
        SimNode leader = cluster.Leader(durability);
        leader.Pause();
        LockHandle next = cluster.Await(first);
        Assert.False(second.IsCompleted);
        Assert.True(next.Token > held.Token);
        Assert.True(next.Remaining > s_lease / 3, $"{next.Remaining} is left of the lease");
        LockHandle last = cluster.Await(second);
        Assert.True(last.Token > next.Token);
        leader.Resume();
    }

    private static void AssertShort(
        Durability durability, Action<ScriptedCluster, SimNode> fail, Action<ScriptedCluster, SimNode> mend)
    {
        ScriptedCluster cluster = new(3);
        List<long> longest = [];
        for (int i = 0; i < Rounds; i++)
        {
            cluster.Run(15.0 + (i * 0.037));
            Assert.True(cluster.Set("k", "before", durability));
            SimNode leader = cluster.Leader(durability);
            fail(cluster, leader);
            longest.Add(Longest(cluster, durability, 8_000));
            mend(cluster, leader);
            cluster.Settle();
        }

        longest.Sort();
        string all = string.Join(", ", longest);
        Assert.True(longest[Rounds / 2] <= MedianMsMax, $"median of {all} ms");
        Assert.True(longest[^1] <= LongestMsMax, $"longest of {all} ms");
    }

    /// <summary>
    /// Virtual ms of the longest call of a caller that writes and reads in turn for so long. Every call succeeds, and
    /// every read finds the write before it.
    /// </summary>
    private static long Longest(ScriptedCluster cluster, Durability durability, long forMs)
    {
        long endMs = cluster.NowMs + forMs;
        long longest = 0;
        for (int i = 0; cluster.NowMs < endMs; i++)
        {
            long beganMs = cluster.NowMs;
            Assert.True(cluster.Set("k", $"{i}", durability));
            longest = Math.Max(longest, cluster.NowMs - beganMs);
            beganMs = cluster.NowMs;
            Assert.Equal($"{i}", cluster.Get("k", durability));
            longest = Math.Max(longest, cluster.NowMs - beganMs);
        }

        return longest;
    }

    private static void Isolate(ScriptedCluster cluster, SimNode node, bool isCut)
    {
        cluster.CutPeers(node, isCut);
        cluster.CutClient(node, isCut);
    }
}
