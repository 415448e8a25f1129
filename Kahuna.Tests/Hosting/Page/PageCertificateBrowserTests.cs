namespace Kahuna.Tests.Hosting.Page;

/// <summary>A browser with a client certificate in its store opens the page.</summary>
[Collection(PageBrowserCollection.Name)]
public sealed class PageCertificateBrowserTests
{
    [Fact]
    public async Task A_certificate_signs_in_without_a_form_and_what_is_typed_overrides_it()
    {
        await using CertificateNode node = await CertificateNode.StartAsync();
        using CertificateBrowser browser = await CertificateBrowser.StartAsync(node.Authority.Issue("CN=eve"));
        browser.Open(node.Address);
        await Chromium.UntilAsync(() => browser.IsShown("session"));
        Assert.Equal("eve", browser.Text("who"));
        Assert.False(browser.IsShown("sign-in"));
        await Chromium.UntilAsync(
            () => browser.Text("message").Contains("permission 'admin'", StringComparison.Ordinal));

        Assert.Equal("Another user", browser.Text("sign-out"));
        browser.Click("sign-out");
        await browser.EnterAsync("root", "rootroot");
        await Chromium.UntilAsync(() => browser.IsShown("session"));
        Assert.Equal("root", browser.Text("who"));
        Assert.Equal("Sign out", browser.Text("sign-out"));
        await Chromium.UntilAsync(() => browser.Text("nodes").Contains("ready", StringComparison.Ordinal));

        // What was typed is forgotten with the document, and the certificate is shown again.
        browser.Click("sign-out");
        await Chromium.UntilAsync(() => browser.IsShown("session") && browser.Text("who") == "eve");
    }

    [Fact]
    public async Task An_administrator_s_certificate_opens_each_view()
    {
        await using CertificateNode node = await CertificateNode.StartAsync();
        using CertificateBrowser browser = await CertificateBrowser.StartAsync(node.Authority.Issue("CN=root"));
        foreach (string view in (string[])["overview", "keys", "locks", "sequences", "sessions", "charts", "slow"])
        {
            browser.Open(node.Address, "#" + view);
            await Chromium.UntilAsync(
                () => browser.IsShown(view) && browser.Text("who") == "root" && browser.Text("message").Length == 0);
        }

        Assert.Empty(browser.Reports());
    }

    [Fact]
    public async Task A_certificate_of_no_user_leads_to_the_form_which_says_so()
    {
        await using CertificateNode node = await CertificateNode.StartAsync();
        using CertificateBrowser browser = await CertificateBrowser.StartAsync(node.Authority.Issue("CN=stranger"));
        browser.Open(node.Address);
        await Chromium.UntilAsync(() => browser.IsShown("sign-in"));
        Assert.Equal("No user has a name of the client certificate.", browser.Text("message"));

        await browser.EnterAsync("root", "rootroot");
        await Chromium.UntilAsync(() => browser.IsShown("session"));
        Assert.Equal("root", browser.Text("who"));
    }

    [Fact]
    public async Task A_certificate_of_another_authority_opens_nothing_and_the_page_says_so()
    {
        await using CertificateNode node = await CertificateNode.StartAsync();
        using ClientAuthority other = new("CN=others");
        using CertificateBrowser browser = await CertificateBrowser.StartAsync(other.Issue("CN=root"));
        browser.Open(node.Address);
        await Chromium.UntilAsync(() => browser.IsShown("sign-in"));
        Assert.Contains("is not one that this node accepts", browser.Text("message"), StringComparison.Ordinal);
        Assert.False(browser.HasDialog);

        await browser.EnterAsync("root", "rootroot");
        await Chromium.UntilAsync(() => browser.IsShown("session"));
        Assert.Equal("root", browser.Text("who"));
    }
}
