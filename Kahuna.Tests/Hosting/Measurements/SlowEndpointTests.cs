using System.Net;
using System.Text.Json;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Options;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Tests.Client;

namespace Kahuna.Tests.Hosting.Measurements;

/// <summary><c>/status/slow</c> of a running node whose threshold is so low that everything is slow.</summary>
public sealed class SlowEndpointTests
{
    [Fact]
    public async Task Writes_and_reads_show_their_stages()
    {
        // With more nodes, the others may be a majority before the leader's own disk is done.
        await using EmbeddedCluster cluster = await StartAsync(1);
        await using KahunaClient client = PatientClient.Connect(cluster.Endpoints);
        await client.KeyValues.SetAsync("a/set", "1");
        await client.KeyValues.SetAsync(
            "a/volatile", "1", new SetOptions { Durability = Durability.Ephemeral });
        await client.KeyValues.GetAsync("a/get");

        Assert.Equal(
            ["received", "proposed", "persisted", "committed", "applied", "answered"],
            await EventsAsync(cluster, "set", "a/set"));
        Assert.Equal(
            ["received", "proposed", "committed", "applied", "answered"],
            await EventsAsync(cluster, "set", "a/volatile"));
        Assert.Equal(
            ["received", "confirmed", "applied", "answered"],
            await EventsAsync(cluster, "get", "a/get"));
    }

    [Theory]
    [InlineData("0")]
    [InlineData("1001")]
    [InlineData("-1")]
    [InlineData("x")]
    [InlineData("")]
    public async Task A_wrong_limit_is_refused(string limit)
    {
        await using EmbeddedCluster cluster = await StartAsync(1);
        (HttpStatusCode code, string text) = await GetAsync(cluster.Nodes[0], $"/status/slow?limit={limit}");
        Assert.Equal(HttpStatusCode.BadRequest, code);
        Assert.Equal("'limit' must be a number from 1 to 1000.\n", text);
    }

    private static async Task<EmbeddedCluster> StartAsync(int nodes) =>
        await EmbeddedCluster.StartAsync(nodes, configure: static options => options with
        {
            Metrics = new MetricsOptions { SlowLogThreshold = TimeSpan.Zero },
        }).WaitAsync(Wait.Longest);

    private static async Task<string[]> EventsAsync(EmbeddedCluster cluster, string operation, string key)
    {
        foreach (KahunaNode node in cluster.Nodes)
        {
            (_, string text) = await GetAsync(node, "/status/slow?limit=1000");
            using JsonDocument json = JsonDocument.Parse(text);
            foreach (JsonElement one in json.RootElement.GetProperty("operations").EnumerateArray())
            {
                if (one.GetProperty("operation").GetString() == operation && one.GetProperty("key").GetString() == key)
                {
                    Assert.Equal(0, one.GetProperty("partition").GetInt32());
                    JsonElement[] events = [.. one.GetProperty("events").EnumerateArray()];
                    int[] times = [.. events.Select(static happened => happened.GetProperty("us").GetInt32())];
                    Assert.Equal(times.Order(), times);
                    Assert.Equal(one.GetProperty("totalUs").GetInt32(), times[^1]);
                    return [.. events.Select(static happened => happened.GetProperty("name").GetString()!)];
                }
            }
        }

        Assert.Fail($"No node knows '{operation} {key}'.");
        return [];
    }

    private static async Task<(HttpStatusCode Code, string Text)> GetAsync(KahunaNode node, string path)
    {
        using HttpMessageInvoker invoker = RawHttp.AnyServer();
        using HttpRequestMessage request = new(HttpMethod.Get, new Uri(node.Options.Advertise, path));
        using HttpResponseMessage response = await invoker.SendAsync(request, CancellationToken.None);
        return (response.StatusCode, await response.Content.ReadAsStringAsync());
    }
}
