using Kahuna.Client;

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
}
