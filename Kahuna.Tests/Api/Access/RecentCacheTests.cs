using Kahuna.Server.Api.Access;

namespace Kahuna.Tests.Api.Access;

/// <summary>A bounded table.</summary>
public sealed class RecentCacheTests
{
    [Fact]
    public void The_entry_that_was_not_used_for_the_longest_goes()
    {
        RecentCache<int, string> cache = new(2);
        cache.Set(1, "a");
        cache.Set(2, "b");
        Assert.True(cache.TryGet(1, out _));
        cache.Set(3, "c");

        Assert.True(cache.TryGet(1, out string? value));
        Assert.Equal("a", value);
        Assert.False(cache.TryGet(2, out _));
        Assert.True(cache.TryGet(3, out _));
        Assert.Equal(2, cache.Count);
    }

    [Fact]
    public void An_entry_is_replaced()
    {
        RecentCache<int, string> cache = new(2);
        cache.Set(1, "a");
        cache.Set(1, "b");

        Assert.True(cache.TryGet(1, out string? value));
        Assert.Equal("b", value);
        Assert.Equal(1, cache.Count);
    }
}
