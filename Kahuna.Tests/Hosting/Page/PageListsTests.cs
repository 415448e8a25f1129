using System.Net;
using System.Text.Json.Nodes;
using Kahuna.Server.Cluster;
using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Page;
using Kahuna.Tests.Access;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Tests.Client;

namespace Kahuna.Tests.Hosting.Page;

/// <summary>The lists and charts that the page asks for: their contents, their bounds, and who gets them.</summary>
[Collection(AccessClusterCollection.Name)]
public sealed class PageListsTests(AccessCluster cluster)
{
    private const string Ephemeral = "DURABILITY_EPHEMERAL";

    private readonly Dictionary<string, string> _tokens = [];

    [Theory]
    [InlineData("/ui/history")]
    [InlineData("/ui/slow")]
    [InlineData("/ui/sessions")]
    [InlineData("/ui/queue?resource=x")]
    public async Task They_are_for_administrators(string path)
    {
        Assert.Equal(HttpStatusCode.Unauthorized, (await cluster.AskAsync(null, "GET", path)).Status);
        Assert.Equal(HttpStatusCode.Forbidden, (await cluster.AskAsync("ann", "GET", path)).Status);
        Assert.Equal(HttpStatusCode.OK, (await cluster.AskAsync("root", "GET", path)).Status);
    }

    [Fact]
    public async Task A_queue_is_told_in_its_order_and_each_node_asks_the_leader()
    {
        const string Hostile = "<img src=x onerror=alert(1)>";
        await ClaimAsync("first", waits: false);
        Task<JsonNode> second = ClaimAsync("second", waits: true);
        JsonNode queue = await QueueAsync(0, waiters: 1);
        Task<JsonNode> third = ClaimAsync(Hostile, waits: true);
        await QueueAsync(0, waiters: 2);
        for (int node = 0; node < 3; node++)
        {
            // The leader tells how long they wait; another node does not know.
            await Wait.UntilAsync(async () => (queue = await QueueAsync(node, waiters: 2))["queue"]!.AsArray()
                .All(static waiter => waiter!["waitedMs"] is not null));
            Assert.All(queue["queue"]!.AsArray(), static waiter => Assert.True((long)waiter!["waitedMs"]! >= 0));
            Assert.Equal(1, (int)queue["holders"]!);
            Assert.Equal(
                ["second", Hostile], queue["queue"]!.AsArray().Select(static waiter => (string?)waiter!["owner"]));
            Assert.All(queue["queue"]!.AsArray(), static waiter =>
            {
                Assert.Equal("exclusive", (string?)waiter!["mode"]);
                Assert.InRange((long)waiter["leftMs"]!, 1, 3_600_000);
                Assert.Equal(60_000, (long)waiter["leaseMs"]!);
            });
        }

        JsonNode none = await ReadAsync($"/ui/queue?resource=nobodys&durability={Ephemeral}");
        Assert.Equal(0, (int)none["waiters"]!);
        Assert.Empty(none["queue"]!.AsArray());
        await ReleaseAsync("first");
        Assert.True((bool?)(await second)["granted"]);
        await ReleaseAsync("second");
        Assert.True((bool?)(await third)["granted"]);
        await ReleaseAsync(Hostile);
    }

    [Fact]
    public async Task The_leader_is_asked_for_a_queue_and_no_other_node()
    {
        byte[] name = "page-asked"u8.ToArray();
        for (int node = 0; node < 3; node++)
        {
            ClusterView view = cluster.Embedded.Nodes[node].View;
            int group = view.Layout.IndexOf(view.Slots.PartitionOf(name), isEphemeral: true);
            ushort before;
            ushort told;
            do
            {
                before = view.Status(group).Leader.Value;
                JsonNode queue = await ReadAsync($"/ui/queue?resource=page-asked&durability={Ephemeral}", node);
                told = (ushort)queue["nodeId"]!;
            }
            while (before == 0 || before != view.Status(group).Leader.Value);

            // If the leader does not answer in time, the node that was asked tells its own copy.
            Assert.Contains(told, (ushort[])[before, view.Identity.Self.Value]);
        }
    }

    [Fact]
    public async Task Sessions_are_told_page_by_page_and_by_how_they_begin()
    {
        const int Keys = 250;
        for (int i = 0; i < Keys; i++)
        {
            Assert.Equal(HttpStatusCode.OK, (await cluster.AskAsync(
                "root", "PUT", "/v1/kv", new JsonObject
                {
                    ["key"] = $"sessions/{i}",
                    ["durability"] = Ephemeral,
                    ["value"] = new JsonObject { ["data"] = "dg==" },
                }.ToJsonString(),
                idempotencyKey: $"key {i}")).Status);
        }

        List<JsonNode> all = await AllAsync("");
        JsonNode[] keys = [.. all.Where(static session => (bool)session["isIdempotencyKey"]!)];
        Assert.True(keys.Length >= Keys, $"{keys.Length}");
        Assert.Equal(
            all.Count,
            all.Select(static session => $"{session["id"]} {session["partition"]} {session["durability"]}")
                .Distinct().Count());
        Assert.All(keys, static session =>
        {
            Assert.Matches("^[0-9a-f]{16}$", (string?)session["id"]);
            Assert.InRange((long)session["leftMs"]!, 1, 3_600_000);
            Assert.InRange((long)session["bytes"]!, 1, 10_000);
        });

        string prefix = ((string)keys[0]["id"]!)[..3];
        List<JsonNode> some = await AllAsync(prefix);
        Assert.NotEmpty(some);
        Assert.All(some, session => Assert.StartsWith(prefix, (string?)session["id"], StringComparison.Ordinal));
    }

    [Theory]
    [InlineData("/ui/sessions?pageToken=x", "pageToken: not one of a former page.")]
    [InlineData("/ui/sessions?pageToken=9999.1", "pageToken: not one of a former page.")]
    [InlineData("/ui/sessions?pageToken=0.-1", "pageToken: not one of a former page.")]
    [InlineData("/ui/queue", "resource: a lock has a name of 1 to 1024 bytes.")]
    [InlineData("/ui/queue?resource=a&durability=x",
        "durability: not DURABILITY_PERSISTENT or DURABILITY_EPHEMERAL.")]
    public async Task Bad_input_is_answered_with_a_sentence(string path, string expected)
    {
        (HttpStatusCode status, string text) = await cluster.AskAsync("root", "GET", path);
        Assert.Equal(HttpStatusCode.BadRequest, status);
        Assert.Equal(expected + "\n", text);
    }

    [Theory]
    [InlineData("/status/node/history")]
    [InlineData("/status/node/slow")]
    [InlineData("/status/node/queue?resource=x")]
    public async Task What_nodes_ask_each_other_is_open_to_nodes_alone(string path)
    {
        Assert.Equal(HttpStatusCode.Unauthorized, (await cluster.AskAsync(null, "GET", path)).Status);
        Assert.Equal(HttpStatusCode.Forbidden, (await cluster.AskAsync("root", "GET", path)).Status);
    }

    [Fact]
    public async Task Slow_operations_of_all_nodes_are_told_in_the_form_that_the_page_shows()
    {
        JsonNode? all = null;
        await Wait.UntilAsync(async () =>
        {
            all = await ReadAsync("/ui/slow");
            return all["nodes"]!.AsArray().All(static node => node!["problem"] is null);
        });
        Assert.Equal([1, 2, 3], all!["nodes"]!.AsArray().Select(static node => (int)node!["status"]!["node"]!));
        Assert.All(all["nodes"]!.AsArray(), static node =>
        {
            Assert.True((long)node!["status"]!["recorded"]! >= 0);
            Assert.NotNull(node["status"]!["operations"]!.AsArray());
        });
    }

    [Fact]
    public async Task The_history_has_all_nodes_and_says_where_metrics_are_off()
    {
        JsonNode? all = null;
        await Wait.UntilAsync(async () =>
        {
            all = await ReadAsync("/ui/history");
            return all["nodes"]!.AsArray().All(static node => node!["problem"] is null);
        });
        Assert.Equal([1, 2, 3], all!["nodes"]!.AsArray().Select(static node => (int)node!["nodeId"]!));
        Assert.All(all["nodes"]!.AsArray(), static node => Assert.True((bool)node!["status"]!["metrics"]!));

        await using EmbeddedCluster off = await EmbeddedCluster.StartAsync(1, configure: static options => options with
        {
            Metrics = options.Metrics with { IsOn = false },
        }).WaitAsync(Wait.Longest);
        using HttpMessageInvoker invoker = RawHttp.AnyServer();
        using HttpRequestMessage request = new(
            HttpMethod.Get, new Uri(off.Nodes[0].Options.Advertise, "/ui/history"));
        using HttpResponseMessage answer = await invoker.SendAsync(request, CancellationToken.None);
        JsonNode told = JsonNode.Parse(await answer.Content.ReadAsStringAsync())!;
        Assert.False((bool)told["nodes"]![0]!["status"]!["metrics"]!);
    }

    private async Task<List<JsonNode>> AllAsync(string prefix)
    {
        List<JsonNode> all = [];
        string token = "";
        do
        {
            JsonNode page = await ReadAsync($"/ui/sessions?prefix={prefix}&pageToken={token}");
            JsonArray sessions = page["sessions"]!.AsArray();
            Assert.InRange(sessions.Count, 0, StateLists.SessionsMax);
            all.AddRange(sessions.Select(static session => session!));
            token = (string)page["nextPageToken"]!;
        }
        while (token.Length > 0);
        return all;
    }

    private async Task<JsonNode> QueueAsync(int node, int waiters)
    {
        JsonNode? queue = null;
        await Wait.UntilAsync(async () =>
        {
            queue = await ReadAsync($"/ui/queue?resource=page-queue&durability={Ephemeral}", node);
            return (int)queue["waiters"]! == waiters;
        });
        return queue!;
    }

    private async Task<JsonNode> ReadAsync(string path, int node = 0)
    {
        (HttpStatusCode status, string text) = await cluster.AskAsync("root", "GET", path, node: node);
        Assert.True(status == HttpStatusCode.OK, text);
        return JsonNode.Parse(text)!;
    }

    private async Task<JsonNode> ClaimAsync(string owner, bool waits)
    {
        (_, string text) = await cluster.AskAsync("root", "PUT", "/v1/locks/page-queue", new JsonObject
        {
            ["durability"] = Ephemeral,
            ["owner"] = owner,
            ["mode"] = "LOCK_MODE_EXCLUSIVE",
            ["leaseMs"] = "60000",
            ["waitMs"] = waits ? "600000" : null,
        }.ToJsonString());
        JsonNode claim = JsonNode.Parse(text)!;
        _tokens[owner] = (string?)claim["token"] ?? text;
        return claim;
    }

    private async Task ReleaseAsync(string owner)
    {
        (HttpStatusCode status, string text) = await cluster.AskAsync(
            "root", "DELETE",
            $"/v1/locks/page-queue?durability={Ephemeral}&owner={Uri.EscapeDataString(owner)}&token={_tokens[owner]}");
        Assert.True(status == HttpStatusCode.OK, text);
    }
}
