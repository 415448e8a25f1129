using System.Net;
using System.Text.Json.Nodes;
using Kahuna.Tests.Access;

namespace Kahuna.Tests.Hosting.Page;

/// <summary>Sessions and queues in a browser, and keys and values that are large or no text, in each view.</summary>
[Collection(PageBrowserCollection.Name)]
public sealed class PageStateTests(PageBrowser browser)
{
    private const string Ephemeral = "DURABILITY_EPHEMERAL";

    private AccessCluster Cluster => browser.Cluster;

    [Fact]
    public async Task The_queue_of_a_lock_opens_beside_its_holder()
    {
        const string Resource = "page-queue" + PageFakes.Hostile;
        string token = await ClaimAsync(Resource, "holder", waits: false);
        Task<string> waiting = ClaimAsync(Resource, PageFakes.Hostile, waits: true);
        await browser.SignInAsync("root", "#locks");
        browser.Run($"document.getElementById('locks-durability').value = '{Ephemeral}'");
        browser.Type("locks-prefix", "page-queue");
        browser.Press("\n");
        await PageBrowser.UntilAsync(
            () => (string?)browser.Run("return document.querySelector('#locks-rows button')?.textContent") == "1");
        browser.Run("document.querySelector('#locks-rows button').click()");
        await PageBrowser.UntilAsync(
            () => browser.Text("queue-rows").Contains(PageFakes.Hostile, StringComparison.Ordinal));
        Assert.Equal("queue-title", browser.Focused);
        Assert.Equal("Queue of " + Resource, browser.Text("queue-title"));
        Assert.Contains("1 waits, as node ", browser.Text("queue-note"), StringComparison.Ordinal);
        Assert.Equal(0L, browser.Run("return document.querySelectorAll('main img, main [onload]').length"));
        browser.Picture("queue");

        Assert.Equal(HttpStatusCode.OK, (await Cluster.AskAsync(
            "root", "DELETE", Path(Resource) + $"?durability={Ephemeral}&owner=holder&token={token}")).Status);
        await waiting;
        await PageBrowser.UntilAsync(() => browser.Text("queue-rows") == "Nobody waits.");
        browser.Click("queue-close");
        Assert.False(browser.IsShown("queue"));
        Assert.Empty(browser.Reports());
    }

    [Fact]
    public async Task Sessions_are_shown_with_what_is_left_of_them()
    {
        Assert.Equal(HttpStatusCode.OK, (await Cluster.AskAsync(
            "root", "PUT", "/v1/kv", SetOf("page-sessions", "v"u8.ToArray()), idempotencyKey: "page-sessions")).Status);
        await browser.SignInAsync("root", "#sessions");
        await PageBrowser.UntilAsync(
            () => browser.Text("sessions-rows").Contains("idempotency key", StringComparison.Ordinal));
        Assert.Matches("(1 h 0 min|59 min)", browser.Text("sessions-rows"));
        browser.Type("sessions-prefix", "no session");
        browser.Press("\n");
        await PageBrowser.UntilAsync(
            () => browser.Text("sessions-rows").Contains("Nothing begins", StringComparison.Ordinal));
        browser.Type("sessions-prefix", "");
        browser.Press("\n");
        await PageBrowser.UntilAsync(
            () => browser.Text("sessions-rows").Contains("idempotency key", StringComparison.Ordinal));
        browser.Picture("sessions");
        Assert.Empty(browser.Reports());
    }

    [Fact]
    public async Task Large_and_binary_values_are_shown_in_part()
    {
        byte[] binary = [.. Enumerable.Range(0, 200_000).Select(static i => (byte)(i * 7))];
        byte[] text = [.. Enumerable.Repeat((byte)'<', 1 << 20)];
        foreach ((string key, byte[] value) in ((string, byte[])[])[("page-large/b", binary), ("page-large/t", text)])
        {
            (HttpStatusCode status, string answer) = await Cluster.AskAsync(
                "root", "PUT", "/v1/kv", SetOf(key, value));
            Assert.True(status == HttpStatusCode.OK, answer);
        }

        await browser.SignInAsync("root", "#keys");
        browser.Run($"document.getElementById('keys-durability').value = '{Ephemeral}'");
        browser.Type("keys-prefix", "page-large/");
        browser.Press("\n");
        await PageBrowser.UntilAsync(
            () => browser.Run("return document.querySelectorAll('#keys-rows button').length") is 2L);
        foreach ((int row, string end) in ((int, string)[])[(0, "more bytes"), (1, "more characters")])
        {
            browser.Run($"document.querySelectorAll('#keys-rows button')[{row}].click()");
            await PageBrowser.UntilAsync(() => ValueEnds(end));
            Assert.InRange(
                (long)browser.Run("return document.getElementById('entry-value').textContent.length")!, 1, 70_000);
            Assert.True(browser.Run("return document.getElementById('entry-text').disabled") is true);
        }

        Assert.Empty(browser.Reports());
    }

    private bool ValueEnds(string end) => browser.Run(
        $"return document.getElementById('entry-value').textContent.endsWith('{end}')") is true;

    private static string SetOf(string key, byte[] value) => new JsonObject
    {
        ["key"] = key,
        ["durability"] = Ephemeral,
        ["value"] = new JsonObject { ["data"] = Convert.ToBase64String(value) },
    }.ToJsonString();

    private static string Path(string resource) => "/v1/locks/" + Uri.EscapeDataString(resource);

    private async Task<string> ClaimAsync(string resource, string owner, bool waits)
    {
        (HttpStatusCode status, string text) = await Cluster.AskAsync("root", "PUT", Path(resource), new JsonObject
        {
            ["durability"] = Ephemeral,
            ["owner"] = owner,
            ["mode"] = "LOCK_MODE_EXCLUSIVE",
            ["leaseMs"] = "600000",
            ["waitMs"] = waits ? "600000" : null,
        }.ToJsonString());
        Assert.True(status == HttpStatusCode.OK, text);
        return (string)JsonNode.Parse(text)!["token"]!;
    }
}
