using Kahuna.Client;
using Kahuna.Client.Watches;
using Kahuna.Server.Hosting;
using Xunit.Abstractions;

namespace Kahuna.Tests.Client.Watches;

/// <summary>What idle watches hold of memory, in the client and in the node together.</summary>
[Collection(MeasuredHeapCollection.Name)]
public sealed class WatchMemoryTests(ITestOutputHelper output)
{
    private const int Watches = 100_000;
    private const int BytesMax = 100_000_000;

    [Fact]
    public async Task A_hundred_thousand_idle_watches_hold_at_most_100_MB()
    {
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1).WaitAsync(Wait.Longest);
        await using KahunaClient client = KahunaClient.Connect(cluster.Endpoints);
        await client.KeyValues.SetAsync("idle/0", "v");
        WatchOptions options = new() { Scope = WatchScope.Key };
        IAsyncEnumerator<WatchEvent>[] watches = new IAsyncEnumerator<WatchEvent>[Watches];
        ValueTask<bool>[] firsts = new ValueTask<bool>[Watches];
        long before = Live();
        for (int i = 0; i < Watches; i++)
        {
            watches[i] = client.KeyValues.WatchAsync($"idle/{i:000000}", options).GetAsyncEnumerator();
            firsts[i] = watches[i].MoveNextAsync();
        }

        await Wait.UntilAsync(async () =>
        {
            await Task.Delay(100);
            return client.Watches.Book.Count == Watches;
        });

        // The node begins watches in the order in which it is asked for them.
        await using IAsyncEnumerator<WatchEvent> last = client.KeyValues.WatchAsync(
            "last", new WatchOptions { ProgressInterval = TimeSpan.FromDays(1) }).GetAsyncEnumerator();
        Assert.True(await Wait.ForAsync(last.MoveNextAsync()));
        long held = Live() - before;
        output.WriteLine($"{held / Watches:N0} bytes for each of {Watches:N0} idle watches");
        await client.KeyValues.SetAsync("idle/000007", "v");
        Assert.True(await firsts[7]);
        Assert.InRange(held, 1, BytesMax);
        GC.KeepAlive(watches);
    }

    private static long Live()
    {
        for (int i = 0; i < 3; i++)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
        }

        return GC.GetTotalMemory(forceFullCollection: true);
    }
}
