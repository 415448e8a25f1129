using OpenQA.Selenium;

namespace Kahuna.Tests.Hosting.Page;

/// <summary>The charts and the slow operations in a browser, with answers of the test.</summary>
[Collection(PageBrowserCollection.Name)]
public sealed class PageChartsTests(PageBrowser browser)
{
    [Theory]
    [InlineData(1_200, false)]
    [InlineData(320, true)]
    public async Task The_charts_of_a_node_have_lines_axes_and_gaps(int width, bool isDark)
    {
        await ShowAsync("#charts", "/ui/history", PageFakes.History(), width, isDark);
        await PageBrowser.UntilAsync(() => Count(".chart") == 6 && Count(".chart path.line-4") >= 3);

        Assert.Equal(2L, (long)browser.Run(
            "return document.querySelector('.chart > svg > path.line-0').getAttribute('d').split('M').length - 1")!);
        Assert.Contains("min", ChartText(0), StringComparison.Ordinal);
        Assert.Contains("start", ChartText(0), StringComparison.Ordinal);
        Assert.Contains("ms", ChartText(1), StringComparison.Ordinal);
        Assert.Contains("MiB", ChartText(3), StringComparison.Ordinal);
        Assert.Equal(
            browser.Run("return document.documentElement.clientWidth"),
            browser.Run("return document.documentElement.scrollWidth"));
        browser.Picture(isDark ? "charts-phone" : "charts");
        Assert.Empty(browser.Reports());
    }

    [Fact]
    public async Task The_keyboard_reads_a_moment_and_a_table_has_the_same()
    {
        await ShowAsync("#charts", "/ui/history", PageFakes.History());
        await PageBrowser.UntilAsync(() => Count(".chart path.line-4") >= 3);
        browser.Run("document.querySelector('.chart svg').focus()");
        browser.Press(Keys.End);
        string newest = Readout();
        Assert.Contains("now: persistent writes", newest, StringComparison.Ordinal);
        browser.Press(Keys.ArrowLeft);
        Assert.NotEqual(newest, Readout());
        browser.Press(Keys.Home);
        Assert.Contains("56 min ago", Readout(), StringComparison.Ordinal);
        browser.Press(Keys.Tab);
        Assert.Equal("", Readout());
        Assert.Equal("SUMMARY", browser.Run("return document.activeElement.tagName"));

        Assert.Equal(0, Count(".chart tbody tr"));
        browser.Press(Keys.Enter);
        await PageBrowser.UntilAsync(() => Count(".chart tbody tr") == 55);
        Assert.Equal(6L, browser.Run("return document.querySelector('.chart tbody tr').cells.length"));
    }

    [Fact]
    public async Task Nodes_that_do_not_answer_or_keep_nothing_are_named()
    {
        await ShowAsync("#charts", "/ui/history", PageFakes.History());
        await PageBrowser.UntilAsync(() => Count("#charts-node option") == 3);
        Choose("2");
        Assert.Equal("Node 2 does not answer: " + PageFakes.Hostile, browser.Text("charts-note"));
        Assert.False(browser.IsShown("charts-list"));
        Choose("3");
        Assert.Contains("Metrics are off on node 3", browser.Text("charts-note"), StringComparison.Ordinal);
        Choose("1");
        Assert.True(browser.IsShown("charts-list"));
        Assert.Equal(0, Count("main img, main [onload]"));
    }

    [Fact]
    public async Task Slow_operations_are_text_with_a_bar_of_their_stages()
    {
        await ShowAsync("#slow", "/ui/slow", PageFakes.Slow(300));
        await PageBrowser.UntilAsync(() => Count("#slow-rows tr") == 200);
        string first = browser.Text("slow-rows").Split('\n')[0];
        Assert.Contains("set, persistent", first, StringComparison.Ordinal);
        Assert.Equal(5L, browser.Run("return document.querySelectorAll('#slow-rows tr:first-child rect').length"));
        string rows = browser.Text("slow-rows");
        Assert.Contains("persisted 89.9 ms", rows, StringComparison.Ordinal);
        Assert.Contains("01 02 ff", rows, StringComparison.Ordinal);
        Assert.Contains("Node 1: 300", browser.Text("slow-note"), StringComparison.Ordinal);
        Assert.Contains(PageFakes.Hostile, browser.Text("slow-note"), StringComparison.Ordinal);

        browser.Answer("/ui/slow", PageFakes.Slow(7));
        await PageBrowser.UntilAsync(() => Count("#slow-rows tr") == 7);
        Assert.Contains(
            PageFakes.Hostile + @"\u{202e}", browser.Text("slow-rows"), StringComparison.Ordinal);
        Assert.Equal(0, Count("main img, main [onload]"));
        Assert.False(browser.HasDialog);
        browser.Picture("slow");
        Assert.Empty(browser.Reports());
    }

    [Fact]
    public async Task A_page_that_is_left_open_for_a_day_takes_no_more_room()
    {
        await ShowAsync("#charts", "/ui/history", PageFakes.History());
        browser.Answer("/ui/slow", PageFakes.Slow(300));
        await PageBrowser.UntilAsync(() => Count(".chart path.line-4") >= 3);
        browser.Run("""
            document.querySelector('.chart details').open = true;
            window.refreshes = 0;
            const wait = window.setTimeout;
            const now = performance.now.bind(performance);
            let skew = 0;
            performance.now = () => now() + skew;
            window.setTimeout = (action, ms) => {
              if (ms !== 2000) {
                return wait(action, ms);
              }

              window.refreshes++;
              skew += 10000;
              return wait(action, 0);
            };
            """);
        await RefreshesAsync("#charts", 300);
        await RefreshesAsync("#slow", 600);
        (long nodes, long listeners, double heap) = browser.Memory();
        await RefreshesAsync("#charts", 1_200);
        await RefreshesAsync("#slow", 2_000);
        (long nodesLater, long listenersLater, double heapLater) = browser.Memory();

        Assert.InRange(nodesLater, 0, nodes + 500);
        Assert.InRange(listenersLater, 0, listeners + 50);
        Assert.InRange(heapLater, 0, heap + (4 << 20));
        Assert.Empty(browser.Reports());
    }

    private async Task RefreshesAsync(string view, int until)
    {
        browser.Run($"location.hash = '{view}'");
        await PageBrowser.UntilAsync(() => browser.Run("return window.refreshes") is long done && done >= until);
    }

    private async Task ShowAsync(string view, string path, string answer, int width = 1_200, bool isDark = false)
    {
        await browser.SignInAsync("root", "", width, isDark);
        browser.Answer(path, answer);
        browser.Run($"location.hash = '{view}'");
    }

    private void Choose(string node) => browser.Run(
        $"const select = document.getElementById('charts-node'); select.value = '{node}'; "
            + "select.dispatchEvent(new Event('change'))");

    private string Readout() => (string)browser.Run("return document.querySelector('.readout').textContent")!;

    private string ChartText(int at) => (string)browser.Run(
        $"return document.querySelectorAll('.chart')[{at}].querySelector('svg').textContent")!;

    private long Count(string selector) =>
        (long)browser.Run($"return document.querySelectorAll('{selector}').length")!;
}
