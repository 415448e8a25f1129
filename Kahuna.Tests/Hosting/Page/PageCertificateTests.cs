using System.Net;
using System.Net.Security;
using System.Security.Cryptography.X509Certificates;
using System.Text.Json.Nodes;
using Kahuna.Server.Api.Access;
using Kahuna.Tests.Access;
using Kahuna.Tests.Client;

namespace Kahuna.Tests.Hosting.Page;

/// <summary>What the page asks for, with the client certificate that a browser shows.</summary>
public sealed class PageCertificateTests : IAsyncLifetime
{
    private CertificateNode? _node;

    public async Task InitializeAsync() => _node = await CertificateNode.StartAsync();

    public async Task DisposeAsync()
    {
        if (_node is not null)
        {
            await _node.DisposeAsync();
        }
    }

    [Fact]
    public async Task A_certificate_of_an_administrator_opens_the_page_without_a_form()
    {
        using HttpClient browser = Browser("CN=root");
        JsonNode who = JsonNode.Parse((await AskAsync(browser, "/v1/admin/whoami")).Text)!;
        Assert.Equal("root", (string?)who["user"]);
        Assert.Equal("certificate", (string?)who["method"]);
        foreach (string path in (string[])
            ["/ui/status", "/ui/history", "/ui/slow", "/ui/sessions", "/ui/queue?resource=x"])
        {
            Assert.Equal(HttpStatusCode.OK, (await AskAsync(browser, path)).Status);
            Assert.Equal(HttpStatusCode.OK, (await AskAsync(browser, path, site: "same-origin")).Status);
        }

        using HttpClient other = Browser("CN=eve");
        Assert.Equal(HttpStatusCode.Forbidden, (await AskAsync(other, "/ui/status")).Status);
    }

    [Theory]
    [InlineData("cross-site")]
    [InlineData("same-site")]
    public async Task A_page_of_another_site_does_nothing_with_the_certificate_of_its_visitor(string site)
    {
        using HttpClient browser = Browser("CN=root");
        Assert.Equal(HttpStatusCode.OK, (await AskAsync(browser, "/ui/status")).Status);
        foreach (string path in (string[])["/ui/status", "/v1/admin/whoami", "/v1/kv?key=a"])
        {
            (HttpStatusCode status, string text) = await AskAsync(browser, path, site: site);
            Assert.Equal(HttpStatusCode.Forbidden, status);
            Assert.Contains("a page of another site", text, StringComparison.Ordinal);
        }

        // What somebody types as an address is of no site.
        Assert.Equal(HttpStatusCode.OK, (await AskAsync(browser, "/ui/status", site: "none")).Status);
    }

    [Fact]
    public async Task Without_a_certificate_the_page_asks_for_a_user_and_a_password_alone_is_enough()
    {
        using HttpClient browser = Browser(null);
        Assert.Equal(HttpStatusCode.Unauthorized, (await AskAsync(browser, "/v1/admin/whoami")).Status);
        Assert.Equal(
            HttpStatusCode.OK, (await AskAsync(browser, "/ui/status", AccessNode.Basic("root", "rootroot"))).Status);
    }

    [Fact]
    public async Task What_is_typed_into_the_page_signs_in_instead_of_the_certificate()
    {
        string typed = AccessNode.Basic("root", "rootroot");
        using HttpClient browser = Browser("CN=eve");
        JsonNode who = JsonNode.Parse((await AskAsync(browser, "/v1/admin/whoami", typed)).Text)!;
        Assert.Equal("root", (string?)who["user"]);
        Assert.Equal("password", (string?)who["method"]);
        Assert.Equal(
            HttpStatusCode.Unauthorized,
            (await AskAsync(browser, "/ui/status", AccessNode.Basic("root", "wrong"))).Status);

        // Other callers say in one way who they are.
        Assert.Equal(
            HttpStatusCode.Unauthorized, (await AskAsync(browser, "/ui/status", typed, isPage: false)).Status);
    }

    private HttpClient Browser(string? subject)
    {
        SslClientAuthenticationOptions tls = new()
        {
            RemoteCertificateValidationCallback = static (_, _, _, _) => true,
        };
        if (subject is not null)
        {
            X509Certificate2 kept = X509CertificateLoader.LoadPkcs12(_node!.Authority.Issue(subject), null);
            tls.ClientCertificateContext = SslStreamCertificateContext.Create(kept, null, offline: true);
        }

        return new HttpClient(new SocketsHttpHandler { SslOptions = tls, UseProxy = false })
        {
            BaseAddress = _node!.Address,
        };
    }

    private static async Task<(HttpStatusCode Status, string Text)> AskAsync(
        HttpClient browser, string path, string? authorization = null, string? site = null, bool isPage = true)
    {
        (HttpStatusCode Status, string Text) answer = default;
        await Wait.UntilAsync(async () =>
        {
            using HttpRequestMessage request = new(HttpMethod.Get, path);
            if (isPage)
            {
                request.Headers.Add(SignInRefusals.PageHeader, "1");
            }

            if (authorization is not null)
            {
                request.Headers.TryAddWithoutValidation("authorization", authorization);
            }

            if (site is not null)
            {
                request.Headers.Add("sec-fetch-site", site);
            }

            using HttpResponseMessage response = await browser.SendAsync(request).WaitAsync(Wait.Longest);
            answer = (response.StatusCode, await response.Content.ReadAsStringAsync());
            return answer.Status != HttpStatusCode.ServiceUnavailable;
        });
        return answer;
    }
}
