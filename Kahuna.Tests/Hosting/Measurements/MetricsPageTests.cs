using System.Net;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Locks;
using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Options;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Tests.Client;

namespace Kahuna.Tests.Hosting.Measurements;

/// <summary>What <c>/metrics</c> says of a running cluster.</summary>
public sealed class MetricsPageTests
{
    [Fact]
    public async Task Operations_are_counted_by_kind_durability_and_outcome()
    {
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1).WaitAsync(Wait.Longest);
        await using KahunaClient client = PatientClient.Connect(cluster.Endpoints);
        for (int i = 0; i < 5; i++)
        {
            await client.KeyValues.SetAsync($"a/{i}", "1");
            await client.KeyValues.GetAsync($"a/{i}", new ReadOptions { Durability = Durability.Ephemeral });
        }

        // Figures of groups are those of the last tick.
        await Wait.UntilAsync(async () =>
            (await ReadAsync(cluster.Nodes[0])).Sum("kahuna_keys", ("kahuna_durability", "persistent")) == 5);
        MetricsText page = await ReadAsync(cluster.Nodes[0]);
        (string, string) persistent = ("kahuna_durability", "persistent");
        (string, string) ephemeral = ("kahuna_durability", "ephemeral");
        Assert.Equal(5, page.Sum(
            "kahuna_operations_total", ("kahuna_operation", "set"), persistent, ("kahuna_outcome", "applied")));
        Assert.Equal(5, page.Sum(
            "kahuna_operations_total", ("kahuna_operation", "get"), ephemeral, ("kahuna_outcome", "not_found")));
        Assert.Equal(5, page.Sum(
            "kahuna_operation_duration_seconds_count", ("kahuna_operation", "set"), persistent));
        Assert.Equal(5, page.Sum(
            "kahuna_operation_duration_seconds_bucket", ("kahuna_operation", "get"), ephemeral, ("le", "+Inf")));
        Assert.True(page.Sum("kahuna_operation_duration_seconds_sum", persistent) > 0);
        Assert.Equal(5, page.Sum("kahuna_keys", persistent));
        Assert.True(page.Sum("kahuna_log_sync_duration_seconds_count") > 0);
        Assert.True(page.Sum("kahuna_log_written_bytes_total") > 0);
        Assert.True(page.Sum("kahuna_disk_free_bytes") > 0);
        Assert.Equal(1, page.Sum("kahuna_node_ready"));
    }

    [Fact]
    public async Task A_claim_that_waits_is_timed()
    {
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1).WaitAsync(Wait.Longest);
        await using KahunaClient client = PatientClient.Connect(cluster.Endpoints);
        TimeSpan minute = TimeSpan.FromMinutes(1);
        LockHandle first = await client.Locks.AcquireAsync("jobs", minute, LastNet.Span);
        Task<LockHandle> second = client.Locks.AcquireAsync("jobs", minute, LastNet.Span).AsTask();
        await Wait.UntilAsync(async () =>
            (await ReadAsync(cluster.Nodes[0])).Sum("kahuna_locks_waiting") == 1);
        Assert.Equal(1, (await ReadAsync(cluster.Nodes[0])).Sum("kahuna_locks_held"));
        await first.DisposeAsync();
        await (await second.WaitAsync(Wait.Longest)).DisposeAsync();
        await Wait.UntilAsync(
            async () => (await ReadAsync(cluster.Nodes[0])).Sum("kahuna_lock_wait_duration_seconds_count") == 1,
            LastNet.Minute);
    }

    [Fact]
    public async Task Each_node_of_a_process_shows_its_own_figures()
    {
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(3).WaitAsync(Wait.Longest);
        await using KahunaClient client = PatientClient.Connect(cluster.Endpoints);
        await client.KeyValues.SetAsync("a/b", "1");
        MetricsText[] pages = [];

        // Figures of groups are those of the last tick, and a busy machine may lose a link for a moment.
        await Wait.UntilAsync(async () =>
        {
            pages = await Task.WhenAll(cluster.Nodes.Select(ReadAsync));
            return pages.Sum(static page => page.Sum(
                    "kahuna_raft_leading", ("kahuna_durability", "persistent"))) == 1
                && pages.All(static page => page.Sum("kahuna_peer_connected") == 2);
        });

        // Parsing has found no series twice.
        Assert.Equal(1, pages.Sum(static page => page.Sum(
            "kahuna_raft_leading", ("kahuna_durability", "persistent"))));
        MetricsText leader = pages.Single(static page => page.Sum(
            "kahuna_raft_leading", ("kahuna_durability", "persistent")) == 1);
        Assert.Equal(2, leader.Families["kahuna_raft_follower_lag"].Samples.Count(static sample =>
            sample.Labels["kahuna_durability"] == "persistent"));
        Assert.All(pages, static page => Assert.Equal(2, page.Families["kahuna_peer_connected"].Samples.Count));
        Assert.All(pages, static page => Assert.Equal(2, page.Sum("kahuna_peer_connected")));
        Assert.Equal(
            ["1", "2", "3"],
            pages.Select(static page => page.Families["target_info"].Samples[0].Labels["service_instance_id"]));
    }

    [Fact]
    public async Task Callers_at_the_same_time_get_the_same_page()
    {
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1).WaitAsync(Wait.Longest);
        string[] pages = await Task.WhenAll(Enumerable.Range(0, 16).Select(_ => TextAsync(cluster.Nodes[0])));

        Assert.True(pages.Distinct().Count() < pages.Length, "each of 16 callers had a page made");
    }

    [Fact]
    public async Task Without_metrics_nothing_is_counted_or_served()
    {
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1, configure: static options =>
            options with { Metrics = new MetricsOptions { IsOn = false } }).WaitAsync(Wait.Longest);
        await using KahunaClient client = PatientClient.Connect(cluster.Endpoints);
        await client.KeyValues.SetAsync("a/b", "1");
        using HttpMessageInvoker invoker = RawHttp.AnyServer();
        using HttpRequestMessage request = new(HttpMethod.Get, new Uri(cluster.Nodes[0].Options.Advertise, "/metrics"));
        using HttpResponseMessage response = await invoker.SendAsync(request, CancellationToken.None);

        Assert.Equal(HttpStatusCode.NotFound, response.StatusCode);
    }

    internal static async Task<MetricsText> ReadAsync(KahunaNode node) => MetricsText.Parse(await TextAsync(node));

    internal static async Task<string> TextAsync(KahunaNode node)
    {
        using HttpMessageInvoker invoker = RawHttp.AnyServer();
        using HttpRequestMessage request = new(HttpMethod.Get, new Uri(node.Options.Advertise, "/metrics"));
        using HttpResponseMessage response = await invoker.SendAsync(request, CancellationToken.None);
        Assert.Equal(HttpStatusCode.OK, response.StatusCode);
        Assert.Equal("text/plain", response.Content.Headers.ContentType!.MediaType);
        return await response.Content.ReadAsStringAsync();
    }
}
