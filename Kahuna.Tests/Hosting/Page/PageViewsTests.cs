using System.Net;
using System.Text;
using System.Text.Json.Nodes;
using Kahuna.Server.Access;
using Kahuna.Tests.Access;

namespace Kahuna.Tests.Hosting.Page;

/// <summary>The page in a browser, before a cluster of three nodes with users and data.</summary>
[Collection(PageBrowserCollection.Name)]
public sealed class PageViewsTests(PageBrowser browser)
{
    private const string Persistent = "DURABILITY_PERSISTENT";
    private const string Ephemeral = "DURABILITY_EPHEMERAL";

    private AccessCluster Cluster => browser.Cluster;

    [Fact]
    public async Task A_wrong_password_is_refused_in_the_page_and_a_right_one_opens_it()
    {
        browser.Open(Cluster.Embedded.Nodes[0].Options.Advertise);
        await browser.EnterAsync("root", "wrong");
        await PageBrowser.UntilAsync(() => browser.Text("message").Length > 0 && browser.IsShown("sign-in"));
        Assert.False(browser.HasDialog);
        Assert.False(browser.IsShown("session"));

        await EnterWhenKnownAsync("root");
        Assert.Equal("root", browser.Text("who"));
        await PageBrowser.UntilAsync(() => browser.Text("partitions").Contains("node ", StringComparison.Ordinal));
        Assert.Equal("", (string?)browser.Run("return Object.keys(localStorage).join() + document.cookie"));
        Assert.Empty(browser.Reports());

        browser.Click("sign-out");
        await PageBrowser.UntilAsync(() => browser.IsShown("sign-in"));
        Assert.Equal("", (string?)browser.Run("return document.getElementById('nodes').textContent"));
    }

    [Fact]
    public async Task The_overview_shows_all_nodes_and_partitions()
    {
        await browser.SignInAsync("root");
        await PageBrowser.UntilAsync(() => Count("#nodes tr") == 3
            && browser.Text("nodes").Split("ready").Length == 4
            && Count("#partitions tr") == 6);

        Assert.Contains("1:", browser.Text("partitions"), StringComparison.Ordinal);
        Assert.Contains("MiB", browser.Text("nodes"), StringComparison.Ordinal);
        browser.Picture("overview");
        Assert.Empty(browser.Reports());
    }

    [Fact]
    public async Task A_user_without_the_permission_is_told_so()
    {
        await browser.SignInAsync("eve");
        await PageBrowser.UntilAsync(
            () => browser.Text("message").Contains("permission 'admin'", StringComparison.Ordinal));
    }

    [Fact]
    public async Task A_key_is_shown_with_its_history_and_changed_and_deleted()
    {
        await SetAsync("page/edit", "one");
        await SetAsync("page/edit", "two", ttlMs: 7_200_000);
        await browser.SignInAsync("root", "#keys");
        await ShowKeyAsync("page/edit");
        Assert.Equal("two", browser.Text("entry-value"));
        Assert.Matches(@"Expires in\s+(2 h 0|1 h \d+) min", browser.Text("entry-facts"));
        await PageBrowser.UntilAsync(
            () => browser.Text("entry-history").Contains("Revision 1: one", StringComparison.Ordinal));
        browser.Picture("keys");

        browser.Type("entry-text", "three");
        browser.Click("entry-save");
        await browser.DoneAsync(() => browser.Text("entry-value") == "three", () => browser.Click("entry-save"));
        Assert.Matches(@"Expires in\s+(2 h 0|1 h \d+) min", browser.Text("entry-facts"));

        // What was opened is out of date for a second change, which says so.
        await SetAsync("page/edit", "from elsewhere");
        browser.Type("entry-text", "lost");
        browser.Click("entry-save");
        await browser.DoneAsync(
            () => browser.Text("message").Contains("nothing was saved", StringComparison.Ordinal),
            () => browser.Click("entry-save"));

        await ShowKeyAsync("page/edit");
        await PageBrowser.UntilAsync(() => browser.Text("entry-value") == "from elsewhere");
        Delete();
        await browser.DoneAsync(() => browser.Text("message") == "Deleted.", Delete);
        await PageBrowser.UntilAsync(
            () => browser.Text("keys-rows").Contains("Nothing begins", StringComparison.Ordinal));

        void Delete()
        {
            if (!browser.IsShown("entry-sure"))
            {
                browser.Click("entry-delete");
            }

            browser.Click("entry-sure");
        }
    }

    [Fact]
    public async Task A_user_who_may_not_write_a_key_sees_no_way_to()
    {
        RoleRecord reader = new(
            "reader",
            [
                new Grant(Permissions.Read, GrantLevels.Both, GrantScope.Bucket, Encoding.UTF8.GetBytes("page")),
            ]);
        await Cluster.ChangeAsync([AccessRowFormat.Of(reader), Cluster.WithRoles("bob", "bob", "reader")]);
        await SetAsync("bob/own", "his");
        await SetAsync("page/others", "not his");
        await browser.SignInAsync("bob", "#keys");
        await ShowKeyAsync("bob/own");
        await PageBrowser.UntilAsync(() => browser.Text("entry-value") == "his");
        Assert.True(browser.IsShown("entry-edit"));

        await ShowKeyAsync("page/others");
        await PageBrowser.UntilAsync(() => browser.Text("entry-value") == "not his");
        Assert.False(browser.IsShown("entry-edit"));

        // Without the permission to read there is nothing but the reason.
        browser.Type("keys-prefix", "ann/");
        browser.Press("\n");
        await PageBrowser.UntilAsync(() => browser.Text("message").Contains("read", StringComparison.Ordinal));
    }

    [Fact]
    public async Task A_hostile_key_and_value_are_text()
    {
        const string Key = "page/hostile<img src=x onerror=alert(1)>\u202e";
        const string Value = "</pre></script><script>alert(2)</script><svg onload=alert(3)>\u0007";
        await SetAsync(Key, Value);
        await LockAsync("page-lock", "<img src=x onerror=alert(4)>", Ephemeral);
        await browser.SignInAsync("root", "#keys");
        await ShowKeyAsync("page/hostile");

        Assert.Contains(
            @"page/hostile<img src=x onerror=alert(1)>\u{202e}", browser.Text("keys-rows"), StringComparison.Ordinal);
        Assert.Equal(@"page/hostile<img src=x onerror=alert(1)>\u{202e}", browser.Text("entry-title"));
        await PageBrowser.UntilAsync(() => browser.Text("entry-value").Length > 0);
        Assert.Contains("3c 2f 70 72 65 3e", browser.Text("entry-value"), StringComparison.Ordinal);

        browser.Run("location.hash = '#locks'");
        await ShowLocksAsync("page-lock", "onerror=alert(4)");
        Assert.False(browser.HasDialog);
        Assert.Equal(0, Count("main img, main script, main [onload]"));
        Assert.Empty(browser.Reports());

        // Markup that got into the page in spite of this would not run either.
        browser.Run(
            "const box = document.createElement('div'); box.innerHTML = '<img src=x onerror=\"window.ran = 1\">'; "
                + "document.body.append(box); const script = document.createElement('script'); "
                + "script.textContent = 'window.ran = 2'; document.body.append(script);");
        await PageBrowser.UntilAsync(() => browser.Reports().Any(
            static report => report.Contains("Content Security Policy", StringComparison.Ordinal)));
        Assert.Null(browser.Run("return window.ran ?? null"));
    }

    [Fact]
    public async Task Ten_thousand_keys_are_shown_page_by_page()
    {
        const int Keys = 10_000;
        const int PerCall = 1_000;
        for (int first = 0; first < Keys; first += PerCall)
        {
            JsonArray items = [];
            for (int i = first; i < first + PerCall; i++)
            {
                items.Add(new JsonObject
                {
                    ["key"] = $"many/{i:d5}",
                    ["durability"] = Ephemeral,
                    ["value"] = Data("v"),
                });
            }

            Assert.Equal(HttpStatusCode.OK, (await Cluster.AskAsync(
                "root", "POST", "/v1/batch/set", new JsonObject { ["items"] = items }.ToJsonString())).Status);
        }

        await browser.SignInAsync("root", "#keys");
        browser.Run("document.getElementById('keys-durability').value = 'DURABILITY_EPHEMERAL'");
        browser.Type("keys-prefix", "many/");
        browser.Press("\n");
        for (int page = 1; page <= Keys / 100; page++)
        {
            string first = $"many/{100 * (page - 1):d5}";
            await PageBrowser.UntilAsync(() => browser.Text("keys-page") == $"Page {page}, 100 rows"
                && (string?)browser.Run("return document.querySelector('#keys-rows button')?.textContent") == first);
            Assert.Equal(100, Count("#keys-rows tr"));
            browser.Run("document.getElementById('keys-next').click()");
        }

        // The token behind the last full page may lead to an empty one.
        await PageBrowser.UntilAsync(() => browser.Run("return document.getElementById('keys-next').disabled") is true);
    }

    [Fact]
    public async Task Locks_are_shown_with_holder_queue_and_a_lease_that_runs_down()
    {
        await LockAsync("shown", "holder-one", Persistent);
        await browser.SignInAsync("root", "#locks");
        await ShowLocksAsync("shown", "holder-one", Persistent);
        Assert.Contains("exclusive", browser.Text("locks-rows"), StringComparison.Ordinal);
        browser.Click("pause");
        string before = browser.Text("locks-rows");
        Assert.Matches(@"(1 h 0|\d+) min", before);
        await PageBrowser.UntilAsync(() => browser.Text("locks-rows") != before);
        browser.Picture("locks");
    }

    [Fact]
    public async Task Sequences_are_shown_with_their_bounds()
    {
        Assert.Equal(
            HttpStatusCode.OK,
            (await Cluster.AskAsync("root", "POST", "/v1/sequences/page-seq", /*lang=json*/ """
                {"initial": "1000", "max": "2000"}
                """)).Status);
        await Cluster.AskAsync("root", "POST", "/v1/next/page-seq", "{}");
        await browser.SignInAsync("root", "#sequences");
        await PageBrowser.UntilAsync(() => browser.Text("sequences-rows").Contains("page-seq", StringComparison.Ordinal)
            && browser.Text("sequences-rows").Contains("1000", StringComparison.Ordinal));
        Assert.Contains("2000", browser.Text("sequences-rows"), StringComparison.Ordinal);
        browser.Picture("sequences");
    }

    private long Count(string selector) =>
        (long)browser.Run($"return document.querySelectorAll('{selector}').length")!;

    private async Task EnterWhenKnownAsync(string user)
    {
        // A node that stood still is not sure of its users for a moment, and says that it does not know them.
        await Cluster.KnownEverywhereAsync();
        await browser.EnterAsync(user, user + user);
        await PageBrowser.UntilAsync(() => browser.IsShown("session"));
    }

    private async Task ShowKeyAsync(string prefix)
    {
        browser.Type("keys-prefix", prefix);
        browser.Press("\n");
        await PageBrowser.UntilAsync(() => Count("#keys-rows button") == 1
            && browser.Text("keys-rows").StartsWith(prefix, StringComparison.Ordinal));
        browser.Run("document.querySelector('#keys-rows button').click()");
        await PageBrowser.UntilAsync(() => browser.IsShown("entry") && browser.Text("entry-facts").Length > 0);
    }

    private async Task ShowLocksAsync(string prefix, string expected, string durability = Ephemeral)
    {
        await PageBrowser.UntilAsync(() => browser.IsShown("locks"));
        browser.Run($"document.getElementById('locks-durability').value = '{durability}'");
        browser.Type("locks-prefix", prefix);
        browser.Press("\n");
        await PageBrowser.UntilAsync(() => browser.Text("locks-rows").Contains(expected, StringComparison.Ordinal));
    }

    private async Task LockAsync(string resource, string owner, string durability)
    {
        (_, string text) = await Cluster.AskAsync("root", "PUT", "/v1/locks/" + resource, new JsonObject
        {
            ["durability"] = durability,
            ["owner"] = owner,
            ["mode"] = "LOCK_MODE_EXCLUSIVE",
            ["leaseMs"] = "3600000",
        }.ToJsonString());
        Assert.True((bool?)JsonNode.Parse(text)!["granted"], text);
    }

    private async Task SetAsync(string key, string value, long? ttlMs = null)
    {
        JsonObject body = new() { ["key"] = key, ["durability"] = Persistent, ["value"] = Data(value) };
        if (ttlMs is { } time)
        {
            body["ttlMs"] = $"{time}";
        }

        (HttpStatusCode status, string text) = await Cluster.AskAsync("root", "PUT", "/v1/kv", body.ToJsonString());
        Assert.True(status == HttpStatusCode.OK, text);
    }

    private static JsonObject Data(string value) =>
        new() { ["data"] = Convert.ToBase64String(Encoding.UTF8.GetBytes(value)) };
}
