using System.Collections.Concurrent;
using System.Globalization;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;
using Kahuna.Client.Watches;
using Kahuna.Server.Hosting;
using static Kahuna.Tests.Client.Watches.WatchedCluster;

namespace Kahuna.Tests.Client.Watches;

/// <summary>Watches and caches of the client at real nodes.</summary>
public sealed class WatchClusterTests
{
    [Fact]
    public async Task Watches_and_caches_follow_the_keys_while_nodes_stop()
    {
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(3).WaitAsync(2 * Wait.Longest);
        await using KahunaClient client = KahunaClient.Connect(cluster.Endpoints);
        KeyValueClient kv = client.KeyValues;
        await kv.SetAsync("w/before", "1");
        await using KeyValueCache cache = await kv.CacheAsync("w/");
        Assert.Equal(["w/before"], cache.Select(static one => one.Key));
        ConcurrentQueue<WatchEvent> seen = [];
        using CancellationTokenSource stop = new();
        TaskCompletionSource begun = new(TaskCreationOptions.RunContinuationsAsynchronously);
        Task watching = FollowAsync(kv, seen, begun, stop.Token);
        await begun.Task.WaitAsync(Wait.Longest);
        int written = 0;
        for (int round = 0; round < 3; round++)
        {
            for (int i = 0; i < 50; i++)
            {
                await kv.SetAsync($"w/{written % 20}", $"{written}");
                written++;
            }

            if (round == 1)
            {
                await cluster.Nodes[0].DisposeAsync();
            }
        }

        GetResult last = await kv.GetAsync("w/9", new ReadOptions { WithPosition = true });
        await cache.WaitForAsync(last.Position!).WaitAsync(Wait.Longest);
        Assert.True(cache.TryGetValue("w/9", out CacheEntry cached));
        Assert.Equal(last.Revision, cached.Revision);
        Assert.Equal(21, cache.Count);
        await Wait.UntilAsync(() => seen.Count >= written);
        Assert.Equal(
            Enumerable.Range(0, written).Select(static i => $"w/{i % 20}={i}"),
            seen.OrderBy(static one => int.Parse(one.Value.AsString()!, CultureInfo.InvariantCulture))
                .Select(static one => $"{one.Key}={one.Value}"));
        foreach (IGrouping<string, WatchEvent> key in seen.GroupBy(static one => one.Key))
        {
            Assert.Equal(
                Enumerable.Range(1, key.Count()).Select(static i => (long)i),
                key.Select(static one => one.Revision.Value));
        }

        await stop.CancelAsync();
        await Assert.ThrowsAsync<KahunaCanceledException>(() => watching.WaitAsync(Wait.Longest));
    }

    [Fact]
    public async Task Events_have_all_that_they_say()
    {
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1).WaitAsync(Wait.Longest);
        await using KahunaClient client = KahunaClient.Connect(cluster.Endpoints);
        KeyValueClient kv = client.KeyValues;
        foreach (Durability durability in new[] { Durability.Persistent, Durability.Ephemeral })
        {
            await kv.SetAsync("e/a", "old", new SetOptions { Durability = durability });
            WatchPosition from = await kv.GetPositionAsync(durability);
            await kv.SetAsync("e/a", "new", new SetOptions { Durability = durability });
            await kv.SetAsync("e/b", KahunaValue.Null, new SetOptions { Durability = durability });
            await kv.SetAsync(
                "e/c", "c", new SetOptions { Durability = durability, Ttl = TimeSpan.FromMilliseconds(50) });
            await kv.DeleteAsync("e/b", new DeleteOptions { Durability = durability });
            await kv.SetManyAsync(
                [new("e/x", "1"), new("other/x", "1"), new("e/y", "2")], new BatchOptions { Durability = durability });
            await kv.SetManyAsync(
                [new("t/x", "1"), new("t/y", "2")], new BatchOptions { Durability = durability, Atomic = true });
            await using IAsyncEnumerator<WatchEvent> watch = kv.WatchAsync(
                "e/", new WatchOptions { From = from, PreviousValues = true, Durability = durability })
                .GetAsyncEnumerator();
            List<string> told = [];
            WatchPosition? behindA = null;
            while (told.Count < 7)
            {
                WatchEvent one = await NextAsync(watch);
                behindA ??= one.Position;
                told.Add($"{one.Kind} {one.Key} {one.Value} {one.Revision} {one.Previous}");
            }

            Assert.Equal("Set e/a new 2 old", told[0]);
            Assert.Equal(
                [
                    "Deleted e/b (null) 2 (null)", "Expired e/c (null) 2 c", "Set e/a new 2 old",
                    "Set e/b (null) 1 ", "Set e/c c 1 ", "Set e/x 1 1 ", "Set e/y 2 1 ",
                ],
                told.Order());
            await using IAsyncEnumerator<WatchEvent> again = kv.WatchAsync(
                "e/", new WatchOptions { From = behindA, Durability = durability, KeysOnly = true })
                .GetAsyncEnumerator();
            Assert.Equal(("e/b", true), ((await NextAsync(again)).Key, again.Current.Value.IsNull));
            await using IAsyncEnumerator<WatchEvent> bucket = kv.WatchAsync(
                "t", new WatchOptions { From = from, Durability = durability, Scope = WatchScope.Bucket })
                .GetAsyncEnumerator();
            Assert.Equal(("t/x", true), ((await NextAsync(bucket)).Key, bucket.Current.HasMore));
            Assert.Equal(("t/y", false), ((await NextAsync(bucket)).Key, bucket.Current.HasMore));
            Assert.Equal(
                KahunaErrorCode.InvalidArgument,
                (await Assert.ThrowsAsync<KahunaException>(async () => await NextAsync(
                    kv.WatchAsync("e/", new WatchOptions { From = Later(from), Durability = durability })
                        .GetAsyncEnumerator()))).Code);
        }
    }

    private static WatchPosition Later(WatchPosition position) =>
        position.With(position.Points[0] with { Index = position.Points[0].Index + 1_000_000 });

    private static async Task FollowAsync(
        KeyValueClient kv, ConcurrentQueue<WatchEvent> seen, TaskCompletionSource begun, CancellationToken ct)
    {
        WatchOptions options = new() { ProgressInterval = TimeSpan.FromDays(1) };
        await foreach (WatchEvent one in kv.WatchAsync("w/", options, ct))
        {
            if (one.Kind == WatchEventKind.Set)
            {
                seen.Enqueue(one);
            }
            else
            {
                Assert.Equal(WatchEventKind.Progress, one.Kind);
                begun.TrySetResult();
            }
        }
    }
}
