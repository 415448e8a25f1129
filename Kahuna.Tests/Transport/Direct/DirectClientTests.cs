using System.Security.Cryptography;
using Kahuna.Client;
using Kahuna.Client.Outcomes;
using Kahuna.Server.Hosting;
using Kahuna.Tests.Client;

namespace Kahuna.Tests.Transport.Direct;

/// <summary>What the SDK does with direct links: it uses them where it can, and works where it cannot.</summary>
public sealed class DirectClientTests
{
    [Fact]
    public async Task A_client_uses_a_link_and_leaves_none()
    {
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1);
        await using (KahunaClient client = Connect(cluster.Endpoints))
        {
            await client.KeyValues.SetAsync("k", "v");
            Assert.Equal("v", (await client.KeyValues.GetAsync("k")).Value.AsString());
            Assert.Equal(1, cluster.Nodes[0].DirectLinks);
        }

        await EventuallyAsync(() => cluster.Nodes[0].DirectLinks == 0);
    }

    [Fact]
    public async Task A_node_without_places_for_links_serves_all_the_same()
    {
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(
            1, configure: static options => options with { DirectLinks = 1 });
        await using KahunaClient first = Connect(cluster.Endpoints);
        await using KahunaClient second = Connect(cluster.Endpoints);
        await first.KeyValues.SetAsync("k", "v");
        await second.KeyValues.SetAsync("k", "w");
        Assert.Equal(1, cluster.Nodes[0].DirectLinks);
        Assert.Equal("w", (await first.KeyValues.GetAsync("k")).Value.AsString());
    }

    [Theory]
    [InlineData(true, 60)]
    [InlineData(false, 60)]
    [InlineData(false, 2)]
    public async Task What_keeps_links_away_keeps_no_client_away_and_is_asked_once(bool cuts, int connectSeconds)
    {
        using LinkProxy proxy = new() { LinkTarget = cuts ? LinkProxy.Cut : null };
        await using EmbeddedCluster cluster = await StartAsync(proxy);
        await using KahunaClient client = KahunaClient.Connect($"https://127.0.0.1:{proxy.Port}", options =>
        {
            options.Insecure = true;
            options.ConnectTimeout = TimeSpan.FromSeconds(connectSeconds);
            options.RequestTimeout = LastNet.Minute;
        });
        await client.KeyValues.SetAsync("k", "v");
        proxy.CutOff(links: false, others: true);
        await SetAsync(client, "w");
        Assert.Equal("w", (await client.KeyValues.GetAsync("k")).Value.AsString());
        Assert.Equal((1, 0), (proxy.Links, cluster.Nodes[0].DirectLinks));
    }

    [Fact]
    public async Task A_link_that_reaches_another_node_is_none()
    {
        await using EmbeddedCluster other = await EmbeddedCluster.StartAsync(1);
        await using KahunaClient elsewhere = Connect(other.Endpoints);
        using LinkProxy proxy = new() { LinkTarget = other.Nodes[0].Options.Advertise.Port };
        await using EmbeddedCluster cluster = await StartAsync(proxy);
        await using KahunaClient client = Connect(proxy);
        await client.KeyValues.SetAsync("k", "v");
        Assert.Equal((1, 0, 0), (proxy.Links, cluster.Nodes[0].DirectLinks, other.Nodes[0].DirectLinks));
    }

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task A_loss_of_the_link_or_of_its_call_is_a_loss_of_the_connection(bool isLink)
    {
        using LinkProxy proxy = new();
        await using EmbeddedCluster cluster = await StartAsync(proxy);
        proxy.LinkTarget = proxy.Target;
        await using KahunaClient client = Connect(proxy);
        for (int i = 0; i < 3; i++)
        {
            await SetAsync(client, $"{i}");
            Assert.Equal(1, cluster.Nodes[0].DirectLinks);
            proxy.CutOff(links: isLink, others: !isLink);
            await EventuallyAsync(() => cluster.Nodes[0].DirectLinks == 0);
        }

        await SetAsync(client, "last");
        Assert.Equal(4, proxy.Links);
    }

    [Fact]
    public async Task Values_of_every_size_arrive_whole_both_ways()
    {
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1);
        await using KahunaClient client = Connect(cluster.Endpoints);
        byte[][] values =
        [
            .. Enumerable.Range(0, 64).Select(
                static i => RandomNumberGenerator.GetBytes(i < 16 ? i : i < 48 ? i * 1_024 : 1 << 20)),
        ];
        await Task.WhenAll(values.Select((value, i) => client.KeyValues.SetAsync($"k{i}", value).AsTask()));
        for (int round = 0; round < 3; round++)
        {
            GetResult[] read = await Task.WhenAll(
                values.Select((_, i) => client.KeyValues.GetAsync($"k{i}").AsTask()));
            Assert.All(
                values.Zip(read),
                static pair => Assert.True(pair.First.AsSpan().SequenceEqual(pair.Second.Value.Memory.Span)));
        }

        Assert.Equal(1, cluster.Nodes[0].DirectLinks);
    }

    [Fact]
    public async Task A_context_may_wait_for_its_own_calls_over_a_link()
    {
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1);
        using LoneThread thread = new();
        await using KahunaClient client = Connect(cluster.Endpoints);
        int done = await thread.RunAsync(() =>
        {
            int count = 0;
            for (; count < 100; count++)
            {
                Assert.True(client.KeyValues.SetAsync("k", $"{count}").AsTask().Wait(Wait.Longest));
            }

            return count;
        });
        Assert.Equal((100, 1), (done, cluster.Nodes[0].DirectLinks));
    }

    [Fact]
    public async Task Code_that_blocks_after_its_answer_keeps_no_other_answer()
    {
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1);
        await using KahunaClient client = Connect(cluster.Endpoints);
        await client.KeyValues.SetAsync("k", "v");
        using ManualResetEventSlim end = new();
        Task blocked = BlockAsync();
        for (int i = 0; i < 100; i++)
        {
            await client.KeyValues.SetAsync("k", $"{i}").AsTask().WaitAsync(LastNet.Minute);
        }

        end.Set();
        await blocked;

        async Task BlockAsync()
        {
            await client.KeyValues.SetAsync("other", "v").ConfigureAwait(false);
            end.Wait(LastNet.Minute);
        }
    }

    private static KahunaClient Connect(string endpoints) =>
        KahunaClient.Connect(endpoints, static options =>
        {
            options.Insecure = true;
            options.ConnectTimeout = LastNet.Minute;
            options.RequestTimeout = LastNet.Minute;
        });

    private static KahunaClient Connect(LinkProxy proxy) => Connect($"https://127.0.0.1:{proxy.Port}");

    /// <summary>A node that clients reach through the proxy alone.</summary>
    private static async Task<EmbeddedCluster> StartAsync(LinkProxy proxy)
    {
        Uri address = new($"https://127.0.0.1:{proxy.Port}");
        EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1, configure: options => options with
        {
            Advertise = address,
            Peers = [.. options.Peers.Select(peer => peer with { Address = address })],
        });
        proxy.Target = cluster.Nodes[0].Options.Listen[0].Port;
        return cluster;
    }

    /// <summary>Whether a set that was under way when a connection was lost took effect does not matter here.</summary>
    private static async Task SetAsync(KahunaClient client, string value)
    {
        for (long until = Environment.TickCount64 + (long)LastNet.Minute.TotalMilliseconds; ;)
        {
            try
            {
                await client.KeyValues.SetAsync("k", value);
                return;
            }
            catch (KahunaException) when (Environment.TickCount64 < until)
            {
                await Task.Delay(10);
            }
        }
    }

    private static async Task EventuallyAsync(Func<bool> holds)
    {
        long until = Environment.TickCount64 + (long)LastNet.Minute.TotalMilliseconds;
        while (!holds())
        {
            Assert.True(Environment.TickCount64 < until);
            await Task.Delay(1);
        }
    }
}
