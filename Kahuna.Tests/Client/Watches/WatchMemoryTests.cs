using Kahuna.Client;
using Kahuna.Client.Watches;
using Kahuna.Server.Hosting;
using Kahuna.Tests.Tools;
using Xunit.Abstractions;

namespace Kahuna.Tests.Client.Watches;

/// <summary>What idle watches hold of memory, in the client and in the node together.</summary>
public sealed class WatchMemoryTests(ITestOutputHelper output)
{
    internal const string Content = "idle-watches";

    private const int Watches = 100_000;
    private const int BytesMax = 100_000_000;

    [Fact]
    public void A_hundred_thousand_idle_watches_hold_at_most_100_MB()
    {
        long held = HeapCommand.InOwnProcess(Content);
        output.WriteLine($"{held / Watches:N0} bytes for each of {Watches:N0} idle watches");
        Assert.InRange(held, 1, BytesMax);
    }

    internal static async Task<long> HoldAsync()
    {
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1).WaitAsync(Wait.Longest);
        await using KahunaClient client = KahunaClient.Connect(cluster.Endpoints);
        await client.KeyValues.SetAsync("idle/0", "v");
        WatchOptions options = new() { Scope = WatchScope.Key };
        IAsyncEnumerator<WatchEvent>[] watches = new IAsyncEnumerator<WatchEvent>[Watches];
        ValueTask<bool>[] firsts = new ValueTask<bool>[Watches];
        long before = HeapCommand.Live();
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
        long held = HeapCommand.Live() - before;
        await client.KeyValues.SetAsync("idle/000007", "v");
        Assert.True(await firsts[7]);
        GC.KeepAlive(watches);
        return held;
    }
}
