using Kahuna.Server.Hosting;
using Kahuna.Tests.Client;
using OpenQA.Selenium;

namespace Kahuna.Tests.Hosting.Page;

/// <summary>The page under other circumstances: a phone, the dark, a keyboard alone, nodes that stop.</summary>
[Collection(PageBrowserCollection.Name)]
public sealed class PageUseTests(PageBrowser browser)
{
    private Uri Node => browser.Cluster.Embedded.Nodes[0].Options.Advertise;

    [Theory]
    [InlineData("#overview")]
    [InlineData("#keys")]
    [InlineData("#locks")]
    [InlineData("#sequences")]
    [InlineData("#sessions")]
    [InlineData("#slow")]
    public async Task At_the_width_of_a_phone_nothing_lies_beside_the_screen(string view)
    {
        await browser.SignInAsync("root", view, width: 320);
        await PageBrowser.UntilAsync(() => browser.IsShown(view[1..])
            && browser.Run($"return document.querySelector('{view} tbody').children.length > 0") is true);

        Assert.Equal(320L, browser.Run("return innerWidth"));
        Assert.Equal(
            browser.Run("return document.documentElement.clientWidth"),
            browser.Run("return document.documentElement.scrollWidth"));
        browser.Picture("phone-" + view[1..]);
    }

    [Fact]
    public async Task In_the_dark_the_ground_is_dark()
    {
        await browser.SignInAsync("root", isDark: true);
        await PageBrowser.UntilAsync(() => browser.Text("nodes").Contains("ready", StringComparison.Ordinal));
        Assert.Equal("rgb(17, 22, 29)", browser.Run("return getComputedStyle(document.body).backgroundColor"));
        browser.Picture("dark");

        await browser.SignInAsync("root");
        Assert.Equal("rgb(255, 255, 255)", browser.Run("return getComputedStyle(document.body).backgroundColor"));
    }

    [Fact]
    public async Task A_keyboard_is_enough()
    {
        await browser.Cluster.KnownEverywhereAsync();
        browser.Open(Node);
        await PageBrowser.UntilAsync(() => browser.Focused == "user");
        browser.Press("root");
        browser.Press(Keys.Tab);
        Assert.Equal("password", browser.Focused);
        browser.Press("rootroot");
        browser.Press(Keys.Enter);
        await PageBrowser.UntilAsync(() => browser.IsShown("session"));

        // From the top: the link past the header, the views, the buttons.
        browser.Run("document.activeElement.blur(); document.getElementById('skip').focus()");
        browser.Press(Keys.Tab);
        browser.Press(Keys.Tab);
        Assert.EndsWith("#keys", (string?)browser.Run("return document.activeElement.href"), StringComparison.Ordinal);
        Assert.NotEqual("none", browser.Run("return getComputedStyle(document.activeElement).outlineStyle"));
        browser.Press(Keys.Enter);
        await PageBrowser.UntilAsync(() => browser.IsShown("keys") && browser.Focused == "keys-title");
        Assert.Equal(
            "#keys", browser.Run("return document.querySelector('[aria-current=page]').getAttribute('href')"));
        browser.Press(Keys.Tab);
        Assert.Equal("keys-prefix", browser.Focused);
    }

    [Fact]
    public async Task Each_field_has_a_label_and_each_table_its_headings()
    {
        await browser.SignInAsync("root");
        Assert.Equal(0L, browser.Run(
            "return [...document.querySelectorAll('input, select, textarea')]"
                + ".filter(x => x.labels.length === 0).length"));
        Assert.Equal(0L, browser.Run("return document.querySelectorAll('th:not([scope])').length"));
        await PageBrowser.UntilAsync(
            () => browser.Run("return document.querySelectorAll('#nodes th[scope=row]').length") is 3L);
    }

    [Fact]
    public async Task Nodes_that_stop_while_the_page_is_open_are_named_and_the_page_survives_its_own_node()
    {
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(3).WaitAsync(Wait.Longest);
        browser.Open(cluster.Nodes[0].Options.Advertise);
        await PageBrowser.UntilAsync(() => browser.Text("nodes").Split("ready").Length == 4);
        Assert.Equal("No authentication", browser.Text("who"));
        Assert.False(browser.IsShown("sign-out"));

        await cluster.Nodes[2].DisposeAsync();
        await PageBrowser.UntilAsync(
            () => browser.Text("advice").Contains("Node 3 does not answer", StringComparison.Ordinal));
        Assert.Contains("not answering", browser.Text("nodes"), StringComparison.Ordinal);
        browser.Picture("node-down");

        await cluster.Nodes[1].DisposeAsync();
        await PageBrowser.UntilAsync(
            () => browser.Text("advice").Contains("has no leader", StringComparison.Ordinal));
        Assert.Contains("Node 2 does not answer", browser.Text("advice"), StringComparison.Ordinal);

        await cluster.Nodes[0].DisposeAsync();
        await PageBrowser.UntilAsync(
            () => browser.Text("message").Contains("does not answer", StringComparison.Ordinal));
        Assert.Empty(browser.Reports());
    }
}
