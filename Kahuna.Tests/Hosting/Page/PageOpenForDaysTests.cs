using System.Text.Json.Nodes;
using Kahuna.Tests.Access;

namespace Kahuna.Tests.Hosting.Page;

/// <summary>A page that stays open while time passes, nodes are upgraded, and nobody looks.</summary>
[Collection(PageBrowserCollection.Name)]
public sealed class PageOpenForDaysTests(PageBrowser browser)
{
    private AccessCluster Cluster => browser.Cluster;

    [Fact]
    public async Task After_an_upgrade_the_page_asks_to_be_loaded_anew()
    {
        await browser.SignInAsync("root");
        await PageBrowser.UntilAsync(() => browser.Text("nodes").Contains("ready", StringComparison.Ordinal));
        Assert.DoesNotContain("Reload the page", browser.Text("advice"), StringComparison.Ordinal);

        (_, string text) = await Cluster.AskAsync("root", "GET", "/ui/status");
        JsonNode status = JsonNode.Parse(text)!;
        JsonNode own = status["nodes"]!.AsArray().Single(
            node => (int)node!["nodeId"]! == (int)status["self"]!)!["status"]!;
        string before = (string)own["version"]!;
        own["version"] = "9.9.9" + PageFakes.Hostile;
        browser.Answer("/ui/status", status.ToJsonString());
        await PageBrowser.UntilAsync(() => browser.Text("advice").Contains(
            $"This page is of version {before}, and its node now runs 9.9.9{PageFakes.Hostile}. Reload the page.",
            StringComparison.Ordinal));
        Assert.Equal(0L, browser.Run("return document.querySelectorAll('main img, main [onload]').length"));
    }

    [Fact]
    public async Task A_paused_page_says_of_when_it_is()
    {
        await browser.SignInAsync("root");
        await PageBrowser.UntilAsync(() => browser.Text("nodes").Contains("ready", StringComparison.Ordinal));
        browser.Click("pause");
        await PageBrowser.UntilAsync(() => IsOfSomeTime("Paused."));

        // Another view is asked for once, and is of then.
        browser.Run("location.hash = '#sequences'");
        await PageBrowser.UntilAsync(() => browser.IsShown("sequences") && IsOfSomeTime("Paused."));
        browser.Click("pause");
        await PageBrowser.UntilAsync(() => browser.Text("message").Length == 0);
    }

    [Fact]
    public async Task Without_an_answer_the_page_says_of_when_it_is_until_there_is_one()
    {
        await browser.SignInAsync("root");
        await PageBrowser.UntilAsync(() => browser.Text("nodes").Contains("ready", StringComparison.Ordinal));
        browser.Run("window.fetchOfTest = window.fetch; window.fetch = () => Promise.reject(new TypeError('planned'))");
        await PageBrowser.UntilAsync(() => IsOfSomeTime("This node does not answer. The page asks again."));
        Assert.Contains("ready", browser.Text("nodes"), StringComparison.Ordinal);
        browser.Run("window.fetch = window.fetchOfTest");
        await PageBrowser.UntilAsync(() => browser.Text("message").Length == 0);
    }

    [Fact]
    public async Task What_was_slow_some_days_ago_has_its_date()
    {
        await browser.SignInAsync("root", "#slow");
        browser.Answer("/ui/slow", PageFakes.Slow(2));
        await PageBrowser.UntilAsync(() => browser.Text("slow-rows").Contains("2026", StringComparison.Ordinal));
    }

    /// <summary>The message begins with a sentence, and says of which year, day and time it is what is shown.</summary>
    private bool IsOfSomeTime(string sentence)
    {
        string message = browser.Text("message");
        return message.StartsWith(sentence + " What is shown is of ", StringComparison.Ordinal)
            && message.Contains($"{DateTime.UtcNow.Year}", StringComparison.Ordinal);
    }
}
