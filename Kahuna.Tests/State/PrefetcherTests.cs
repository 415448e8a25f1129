using System.Text;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;

namespace Kahuna.Tests.State;

/// <summary>
/// What was hashed to look ahead is not hashed again, and is never taken for the hash of another key.
/// </summary>
public sealed class PrefetcherTests
{
    private readonly KeyStore _store = new(new StateLimits { HashSecret = new HashSecret(1, 2) });

    [Fact]
    public void Hashes_of_a_group_are_known_until_the_next()
    {
        Prefetcher ahead = new(_store);
        Add(ahead, "a", "b", "c");
        ahead.PrefetchReads();
        Assert.Equal(
            [Known("a"), Known("b"), Known("c"), default, default], Enumerable.Range(0, 5).Select(ahead.HashOf));
        Assert.Equal(default, ahead.HashOf(-1));
        Add(ahead, "d");
        ahead.PrefetchWrites();
        Assert.Equal([Known("d"), default], Enumerable.Range(0, 2).Select(ahead.HashOf));
        ahead.Forget();
        Assert.Equal(default, ahead.HashOf(0));
    }

    [Fact]
    public void Keys_of_items_are_looked_at_besides_and_are_none_of_the_group()
    {
        Prefetcher ahead = new(_store);
        for (int round = 0; round < 2; round++)
        {
            Add(ahead, "a", "b");
            for (int i = 0; i < 200; i++)
            {
                ahead.AddItem(Encoding.UTF8.GetBytes($"item {i}"));
            }

            ahead.PrefetchWrites();
            Assert.Equal([Known("a"), Known("b"), default], Enumerable.Range(0, 3).Select(ahead.HashOf));
        }
    }

    private static void Add(Prefetcher ahead, params string[] keys)
    {
        foreach (string key in keys)
        {
            ahead.Add(Encoding.UTF8.GetBytes(key));
        }
    }

    private KnownHash Known(string key) => new(_store.Keys.HashOf(Encoding.UTF8.GetBytes(key)));
}
