using Kahuna.Server.State.Rows;
using Kahuna.Tests.Simulation.Nodes;

namespace Kahuna.Tests.Simulation;

/// <summary>The memory of ephemeral keys has a limit, at which writes are refused and nothing else.</summary>
public sealed class EphemeralMemoryTests
{
    private const long Limit = 16_000_000;

    [Fact]
    public void At_the_limit_writes_are_refused_until_room_is_made()
    {
        ScriptedCluster cluster = new(nodes: 3, Limit);
        string value = new('x', 200_000);
        int written = 0;
        for (int refused = 0; refused < 5 && written < 200; cluster.Run(0.2))
        {
            // The log shrinks for a moment after each write.
            KahunaErrorCode? error = cluster.TrySet($"key{written}", value, Durability.Ephemeral);
            Assert.True(error is null or KahunaErrorCode.MemoryFull);
            (written, refused) = error is null ? (written + 1, 0) : (written, refused + 1);
        }

        Assert.InRange(written, 30, 90);
        Assert.Null(cluster.TrySet("key0", value, Durability.Persistent));
        Assert.Equal(value, cluster.Get("key3", Durability.Ephemeral));
        for (int i = 0; i < written; i++)
        {
            Assert.True(cluster.Delete($"key{i}", Durability.Ephemeral));
        }

        cluster.Run(1);
        Assert.Null(cluster.TrySet("key0", value, Durability.Ephemeral));
    }

    [Fact]
    public void With_eviction_writes_go_on_and_keys_in_use_stay()
    {
        ScriptedCluster cluster = new(nodes: 3, Limit, evicts: true);
        string value = new('x', 20_000);
        string hot = new('h', 20_000);
        Assert.Null(cluster.TrySet("hot", hot, Durability.Ephemeral));
        Assert.Null(cluster.TrySet("cold", value, Durability.Persistent));
        int refused = 0;
        for (int i = 0; i < 3_000; i++)
        {
            refused += cluster.TrySet($"key{i}", value, Durability.Ephemeral) is null ? 0 : 1;
            if (i % 20 == 0)
            {
                Assert.Equal(hot, cluster.Get("hot", Durability.Ephemeral));
            }
        }

        Assert.Equal(0, refused);
        Assert.Null(cluster.Get("key0", Durability.Ephemeral));
        Assert.Equal(value, cluster.Get("key2999", Durability.Ephemeral));
        Assert.Equal(value, cluster.Get("cold", Durability.Persistent));
    }

    [Fact]
    public void With_eviction_keys_also_go_when_slabs_run_out()
    {
        StateLimits limits = new() { HistoryPerKey = 0, SlabsMax = 60, SlabsReserved = 20 };
        ScriptedCluster cluster = new(nodes: 3, ephemeralBytesMax: 1L << 40, evicts: true, limits: limits);
        string value = new('x', 200_000);
        int refused = 0;
        for (int i = 0; i < 150; i++)
        {
            refused += cluster.TrySet($"key{i}", value, Durability.Ephemeral) is null ? 0 : 1;
            cluster.Run(0.1);
        }

        Assert.Equal(0, refused);
        Assert.Null(cluster.Get("key0", Durability.Ephemeral));
        Assert.Equal(value, cluster.Get("key149", Durability.Ephemeral));
        Assert.InRange(cluster.Keys(Durability.Ephemeral), 10, limits.SlabsMax - limits.SlabsReserved);
    }

    [Theory]
    [InlineData(2)]
    [InlineData(100)]
    public void While_no_majority_answers_the_same_room_is_made_once(int entriesInFlight)
    {
        ScriptedCluster cluster = new(nodes: 3, Limit, evicts: true, entriesInFlight);
        string value = new('x', 100_000);
        int most = Fill(new ScriptedCluster(nodes: 3, Limit, evicts: true, entriesInFlight), value, int.MaxValue);
        Assert.InRange(most, 15, 60);

        // One more, and keys have to go: what waits in the log makes room scarce for as long as nobody acknowledges it.
        Assert.Equal(most, Fill(cluster, value, most));
        SimNode leader = cluster.Leader(Durability.Ephemeral);
        SimNode[] others = [.. cluster.Nodes.Where(node => node != leader)];
        Array.ForEach(others, static node => node.Pause());
        Task<bool>[] writes =
            [.. Enumerable.Range(0, 8).Select(i => cluster.BeginSet($"more{i}", value, Durability.Ephemeral))];
        cluster.Run(0.5);
        Assert.All(writes, static write => Assert.False(write.IsCompleted));
        Array.ForEach(others, static node => node.Resume());
        cluster.Run(3);
        Assert.All(writes, static write => Assert.True(write.Result));
        Assert.Same(leader, cluster.Leader(Durability.Ephemeral));
        Assert.InRange(cluster.Keys(Durability.Ephemeral), most / 2, most + writes.Length - 1);
    }

    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    public void With_eviction_values_of_all_sizes_are_taken_also_while_a_node_is_away(int seed)
    {
        ScriptedCluster cluster = new(nodes: 3, Limit, evicts: true, groups: 3, limits: new StateLimits());
        SimNode away = cluster.Nodes[0];
        Random random = new(seed);
        int refusedInARow = 0;
        for (int i = 0; i < 900; i++)
        {
            if (i == 300)
            {
                away.Crash(power: false);
            }
            else if (i == 600)
            {
                cluster.Start(away);
            }

            // As many size classes as there are, each with slabs of its own; the few keys have histories.
            string value = new('x', (int)Math.Pow(2, 6 + (random.NextDouble() * 12)));
            bool isTaken = cluster.TrySet($"key{random.Next(100)}", value, Durability.Ephemeral) is null;
            refusedInARow = isTaken ? 0 : refusedInARow + 1;
            Assert.InRange(refusedInARow, 0, 20);
            cluster.Run(isTaken ? 0.01 : 0.2);
        }
    }

    [Fact]
    public void A_member_that_is_restored_slowly_keeps_nobody_from_writing()
    {
        ScriptedCluster cluster = new(nodes: 3, Limit);
        string value = new('x', 200_000);
        const int Keys = 40;
        for (int i = 0; i < Keys; i++)
        {
            Assert.Null(cluster.TrySet($"key{i}", value, Durability.Ephemeral));
        }

        SimNode slow = cluster.Nodes.First(node => node != cluster.Leader(Durability.Ephemeral));
        slow.Crash(power: false);
        cluster.Run(1);
        cluster.ClogPeers(slow, extraMs: 250);
        cluster.Start(slow);
        bool isLetGo = false;
        for (int i = 0; i < 3 * Keys; i++)
        {
            // All that is written is kept for it at first: more than there is room for.
            Assert.Null(cluster.TrySet($"key{i % Keys}", value, Durability.Ephemeral));
            cluster.Run(0.05);
            isLetGo |= cluster.WasSaid($"node {slow.Id} is")
                && cluster.WasSaid("no more is kept for it (a quarter of --ephemeral-limit");
        }

        Assert.True(isLetGo);
        cluster.ClogPeers(slow, extraMs: 0);
        cluster.Settle();
        Assert.Equal(value, cluster.Get("key0", Durability.Ephemeral));
    }

    [Fact]
    public void Writes_in_memory_write_nothing_to_the_disk()
    {
        ScriptedCluster cluster = new(nodes: 3);
        Assert.Null(cluster.TrySet("key", "first", Durability.Ephemeral));
        cluster.Run(1);
        long before = cluster.LogBatches;
        for (int i = 0; i < 100; i++)
        {
            Assert.Null(cluster.TrySet("key", $"value {i}", Durability.Ephemeral));
        }

        // The entry that an idle persistent group may write is none of theirs.
        Assert.InRange(cluster.LogBatches - before, 0, 3);
        Assert.Null(cluster.TrySet("key", "stored", Durability.Persistent));
        Assert.InRange(cluster.LogBatches - before, 2, 10);
    }

    /// <summary>Writes keys, as many as are asked for and stay without one having to go; how many these are.</summary>
    private static int Fill(ScriptedCluster cluster, string value, int countMax)
    {
        for (int written = 0; written < countMax; written++)
        {
            Assert.Null(cluster.TrySet($"key{written}", value, Durability.Ephemeral));
            if (cluster.Keys(Durability.Ephemeral) <= written)
            {
                return written;
            }
        }

        return countMax;
    }
}
