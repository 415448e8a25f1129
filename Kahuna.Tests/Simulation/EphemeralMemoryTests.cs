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
}
