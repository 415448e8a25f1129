using Kahuna.Client;
using Kahuna.Client.Watches;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Watches;
using static Kahuna.Tests.Client.Watches.WatchedCluster;
using static Kahuna.Tests.Client.Watches.WatchFrames;

namespace Kahuna.Tests.Client.Watches;

/// <summary>Watches that return the keys as they are first, and the caches that are built on them.</summary>
public sealed class WatchStateTests
{
    private static readonly WatchOptions s_withState = new() { WithState = true };

    private readonly WatchedCluster _cluster = new(nodes: 2, partitions: 2);
    private int _pages;

    [Fact]
    public async Task Changes_that_a_page_shows_are_not_returned_and_those_behind_it_are()
    {
        await using KahunaClient client = await _cluster.Fake.ConnectedAsync();
        Pages(
            (0, null, Page(At(20), "a2", ("a1", 1), ("a2", 1))),
            (0, "a2", Page(At(30), null, ("a5", 2))),
            (1, null, Page(At(20, group: 2), null, ("a3", 1))));
        await using IAsyncEnumerator<WatchEvent> watch = client.KeyValues.WatchAsync("a", s_withState)
            .GetAsyncEnumerator();
        Assert.Equal("Current a1", Told(await NextAsync(watch)));
        FakeWatchStream stream = await _cluster.StreamAsync();
        Assert.Equal([At(20), At(20, group: 2)], stream.Watches.Values.Single().Points);
        stream.Changes(
            new SentChange(22, "a1", 1),
            new SentChange(23, "a4", 1),
            new SentChange(24, "a0", 1) { N = 0, Transaction = 1 },
            new SentChange(24, "a4", 1) { N = 1, Transaction = 1 },
            new SentChange(31, "a5", 1) { N = 0, Transaction = 1 },
            new SentChange(31, "a6", 1) { N = 1, Transaction = 1 });
        stream.Progress(At(31));
        Assert.Equal("Current a2", Told(await NextAsync(watch)));
        Assert.Equal("Current a5", Told(await NextAsync(watch)));
        WatchEvent last = await NextAsync(watch);
        Assert.Equal(("Current a3", null), (Told(last), last.Position));
        foreach (string told in new[] { "Set a1", "Set a0", "Set a5+", "Set a6" })
        {
            WatchEvent one = await NextAsync(watch);
            Assert.Equal((told, null), (Told(one), one.Position));
        }

        WatchEvent end = await NextAsync(watch);
        Assert.Equal(("CurrentEnd ", At(31)), (Told(end), end.Position!.Points[0]));
        stream.Changes(new SentChange(32, "a4", 1));
        last = await NextAsync(watch);
        Assert.Equal(("Set a4", At(32, 0)), (Told(last), last.Position!.Points[0]));
    }

    [Fact]
    public async Task The_state_is_returned_again_after_a_loss()
    {
        await using KahunaClient client = await _cluster.Fake.ConnectedAsync();
        Pages((0, null, Page(At(20), null, ("a1", 1))), (1, null, Page(At(20, group: 2), null)));
        await using IAsyncEnumerator<WatchEvent> watch = client.KeyValues.WatchAsync("a", s_withState)
            .GetAsyncEnumerator();
        Assert.Equal("Current a1", Told(await NextAsync(watch)));
        Assert.Equal("CurrentEnd ", Told(await NextAsync(watch)));
        FakeWatchStream stream = await _cluster.StreamAsync();
        stream.Changes(new SentChange(21, "a2", 1));
        Assert.Equal("Set a2", Told(await NextAsync(watch)));
        stream.Notice(WatchNoticeCode.Compacted, 0, At(50));
        Assert.Equal("Compacted ", Told(await NextAsync(watch)));
        Pages((0, null, Page(At(60), null, ("a2", 1))), (1, null, Page(At(20, group: 2), null)));
        Assert.Equal("Current a2", Told(await NextAsync(watch)));
        Assert.Equal("CurrentEnd ", Told(await NextAsync(watch)));
        await Wait.UntilAsync(() => stream.Watches.ContainsKey(2) && stream.Watches.Count == 1);
    }

    [Theory]
    [InlineData("b", "b1", "b", "b/x")]
    [InlineData("b/c", "b", "b/c/x", "b/c/y")]
    public async Task The_state_of_a_bucket_has_no_other_keys(string bucket, params string[] keys)
    {
        await using KahunaClient client = await _cluster.Fake.ConnectedAsync();
        List<string> ranges = [];
        _cluster.OnRead = (_, range) =>
        {
            lock (ranges)
            {
                ranges.Add($"{range.Start} {range.End}");
            }

            return range.Partition == 0
                ? Page(At(10), null, [.. keys.Append(bucket + "/deep/x").Select(static key => (key, 1L))])
                : Page(At(10, group: 2), null);
        };
        await using IAsyncEnumerator<WatchEvent> watch = client.KeyValues.WatchAsync(
            bucket, new WatchOptions { WithState = true, Scope = WatchScope.Bucket }).GetAsyncEnumerator();
        List<string> found = [];
        while ((await NextAsync(watch)).Kind == WatchEventKind.Current)
        {
            found.Add(watch.Current.Key);
        }

        Assert.Equal(keys.Skip(1), found);
        Assert.Equal(bucket == "b" ? "b b0" : "b/c/ b/c0", ranges[0]);
    }

    [Fact]
    public async Task A_cache_follows_the_keys_and_tells_changes_in_order()
    {
        await using KahunaClient client = await _cluster.Fake.ConnectedAsync();
        Pages((0, null, Page(At(20), null, ("a1", 1), ("a2", 1))), (1, null, Page(At(20, group: 2), null)));
        await using KeyValueCache cache = await client.KeyValues.CacheAsync("a");
        Assert.Equal(2, cache.Count);
        Assert.True(cache.TryGetValue("a1", out CacheEntry entry));
        Assert.Equal(("v", 1L), (entry.Value.AsString(), entry.Revision.Value));
        Assert.InRange(cache.Staleness, TimeSpan.Zero, TimeSpan.FromMinutes(1));
        List<string> changes = [];
        using IDisposable failing = cache.OnChange(static _ => throw new InvalidOperationException("handler"));
        using IDisposable handler = cache.OnChange(
            change => changes.Add($"{change.Key} {change.Before?.Revision} {change.After?.Revision}"));
        FakeWatchStream stream = await _cluster.StreamAsync();
        stream.Changes(
            new SentChange(21, "a1", 1) { Revision = 2 },
            new SentChange(22, "a2", 1) { Kind = WatchedChangeKind.Expired, Revision = 2 },
            new SentChange(23, "a3", 1));
        await Wait.UntilAsync(() => cache.Position is { } at && at.Covers(At(23, 0)));
        Assert.Equal(["a1 1 2", "a2 1 ", "a3  1"], changes);
        Assert.Equal(["a1", "a3"], cache.Select(static one => one.Key).Order());
        handler.Dispose();
        Pages((0, null, Page(At(60), null, ("a1", 2), ("a4", 1))), (1, null, Page(At(20, group: 2), null)));
        using IDisposable later = cache.OnChange(
            change => changes.Add($"{change.Key} {change.Before?.Revision} {change.After?.Revision}"));
        WatchPosition before = cache.Position!;
        stream.Notice(WatchNoticeCode.Compacted, 0, At(50));
        await cache.WaitForAsync(before.With(At(60))).WaitAsync(Wait.Longest);
        Assert.Equal(["a4  1", "a3 1 "], changes.Skip(3));
        Assert.Equal(["a1", "a4"], cache.Select(static one => one.Key).Order());
    }

    [Fact]
    public async Task A_cache_knows_how_old_it_may_be()
    {
        ManualTime time = new();
        await using KahunaClient client = await _cluster.Fake.ConnectedAsync(time, TimeSpan.FromMinutes(5));
        Pages((0, null, Page(At(20), null)), (1, null, Page(At(20, group: 2), null)));
        await using KeyValueCache cache = await client.KeyValues.CacheAsync("a");
        FakeWatchStream stream = await _cluster.StreamAsync();
        time.Jump(TimeSpan.FromSeconds(2));
        Assert.InRange(cache.Staleness.TotalSeconds, 2, 2.5);
        stream.Progress(At(25), behindMs: 300);
        stream.Progress(At(25, group: 2), behindMs: 100);
        await Wait.UntilAsync(() => cache.Staleness < TimeSpan.FromSeconds(1));
        Assert.InRange(cache.Staleness.TotalMilliseconds, 300, 500);
        WatchPosition next = cache.Position!.With(At(30));
        Task reached = cache.WaitForAsync(next);
        stream.Changes(new SentChange(29, "a1", 1));
        await Wait.UntilAsync(() => cache.Count == 1);
        Assert.False(reached.IsCompleted);
        stream.Progress(At(30));
        await reached.WaitAsync(Wait.Longest);
    }

    [Fact]
    public async Task A_cache_that_grows_too_large_ends_with_a_clear_error()
    {
        await using KahunaClient client = await _cluster.Fake.ConnectedAsync();
        Pages((0, null, Page(At(20), null, ("a1", 1), ("a2", 1))), (1, null, Page(At(20, group: 2), null)));
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(
            () => client.KeyValues.CacheAsync("a", new CacheOptions { MaxKeys = 1 }));
        Assert.Equal(KahunaErrorCode.InvalidArgument, failure.Code);
        Assert.Contains("MaxKeys (1)", failure.Message, StringComparison.Ordinal);
        await using KeyValueCache cache = await client.KeyValues.CacheAsync("a", new CacheOptions { MaxBytes = 20 });
        FakeWatchStream stream = await _cluster.StreamAsync();
        Task waits = cache.WaitForAsync(cache.Position!.With(At(99)));
        stream.Changes(new SentChange(21, "a1", stream.IdOf("a")) { Value = new string('x', 20), Revision = 2 });
        await Assert.ThrowsAsync<KahunaException>(() => waits.WaitAsync(Wait.Longest));
        Assert.NotNull(cache.Failure);
        Assert.Throws<KahunaException>(() => cache.TryGetValue("a1", out _));
        await Wait.UntilAsync(() => stream.Watches.IsEmpty);
    }

    [Fact]
    public async Task A_handler_may_dispose_its_cache_and_no_handler_is_called_afterwards()
    {
        await using KahunaClient client = await _cluster.Fake.ConnectedAsync();
        Pages((0, null, Page(At(20), null)), (1, null, Page(At(20, group: 2), null)));
        KeyValueCache cache = await client.KeyValues.CacheAsync("a");
        int calls = 0;
        using IDisposable handler = cache.OnChange(_ =>
        {
            calls++;
            cache.DisposeAsync().AsTask().Wait();
        });
        FakeWatchStream stream = await _cluster.StreamAsync();
        stream.Changes(new SentChange(21, "a1", 1), new SentChange(22, "a2", 1));
        await Wait.UntilAsync(() => stream.Watches.IsEmpty);
        Assert.Equal(1, calls);
        await cache.DisposeAsync();
    }

    private static string Told(in WatchEvent told) => $"{told.Kind} {told.Key}{(told.HasMore ? "+" : "")}";

    /// <summary>The pages of the partitions: each is the answer behind a key.</summary>
    private void Pages(params (int Partition, string? After, FakeReply Page)[] pages) =>
        _cluster.OnRead = (_, range) =>
        {
            Interlocked.Increment(ref _pages);
            string? after = (range.Flags & RangeFlags.AfterStart) != 0 ? range.Start : null;
            return pages.Single(page => page.Partition == range.Partition && page.After == after).Page;
        };
}
