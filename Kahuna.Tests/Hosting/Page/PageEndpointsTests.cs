using System.Net;
using System.Text;
using System.Text.Json.Nodes;
using Kahuna.Server.Api.Access;
using Kahuna.Server.Cluster;
using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Hosting.Page;
using Kahuna.Tests.Access;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Tests.Client;

namespace Kahuna.Tests.Hosting.Page;

/// <summary>The paths of the page: what is open, what is not, and with which headers it is sent.</summary>
[Collection(AccessClusterCollection.Name)]
public sealed class PageEndpointsTests(AccessCluster cluster) : IDisposable
{
    private readonly HttpMessageInvoker _invoker = RawHttp.AnyServer();

    private Uri Node => cluster.Embedded.Nodes[0].Options.Advertise;

    public void Dispose() => _invoker.Dispose();

    [Fact]
    public async Task Each_file_is_open_and_has_the_headers_of_a_page_that_runs_nothing_foreign()
    {
        IReadOnlyDictionary<string, PageFile> files = PageFile.ReadAll();
        Assert.True(files.Count > 10);
        foreach (string path in files.Keys.Select(static name => "/ui/" + name).Prepend("/ui").Append("/ui/"))
        {
            using HttpResponseMessage answer = await AskAsync(path);
            Assert.Equal(HttpStatusCode.OK, answer.StatusCode);
            string policy = answer.Headers.GetValues("Content-Security-Policy").Single();
            Assert.StartsWith(
                "default-src 'none'; script-src 'self'; style-src 'self';", policy, StringComparison.Ordinal);
            Assert.Contains("frame-ancestors 'none'", policy, StringComparison.Ordinal);
            Assert.DoesNotContain("unsafe", policy, StringComparison.Ordinal);
            Assert.Equal("nosniff", answer.Headers.GetValues("X-Content-Type-Options").Single());
            Assert.Equal("no-referrer", answer.Headers.GetValues("Referrer-Policy").Single());
            Assert.True(answer.Headers.CacheControl!.NoCache);
            Assert.NotNull(answer.Headers.ETag);
            Assert.Equal(
                files[path.StartsWith("/ui/", StringComparison.Ordinal) && path.Length > 4 ? path[4..] : "index.html"]
                    .Content,
                await answer.Content.ReadAsByteArrayAsync());
        }
    }

    [Fact]
    public async Task A_browser_that_has_the_present_version_gets_no_content()
    {
        using HttpResponseMessage first = await AskAsync("/ui/app.js");
        string tag = first.Headers.ETag!.ToString();
        using HttpResponseMessage second = await AskAsync("/ui/app.js", ("if-none-match", $"\"other\", W/{tag}"));
        Assert.Equal(HttpStatusCode.NotModified, second.StatusCode);
        using HttpResponseMessage other = await AskAsync("/ui/app.js", ("if-none-match", "\"other\""));
        Assert.Equal(HttpStatusCode.OK, other.StatusCode);
    }

    [Theory]
    [InlineData("/ui/nothing.js")]
    [InlineData("/ui/..%2fapp.js")]
    [InlineData("/ui/page%2fapp.js")]
    public async Task There_are_no_other_files(string path)
    {
        using HttpResponseMessage answer = await AskAsync(path);
        Assert.Equal(HttpStatusCode.NotFound, answer.StatusCode);
    }

    [Fact]
    public async Task The_status_of_all_nodes_is_for_administrators()
    {
        Assert.Equal(HttpStatusCode.Unauthorized, (await cluster.AskAsync(null, "GET", "/ui/status")).Status);
        Assert.Equal(HttpStatusCode.Forbidden, (await cluster.AskAsync("eve", "GET", "/ui/status")).Status);

        JsonNode? all = null;
        await Wait.UntilAsync(async () =>
        {
            (HttpStatusCode status, string text) = await cluster.AskAsync("root", "GET", "/ui/status", node: 1);
            Assert.Equal(HttpStatusCode.OK, status);
            all = JsonNode.Parse(text);
            return all!["nodes"]!.AsArray().All(static node => node!["problem"] is null);
        });
        Assert.Equal(2, (int)all!["self"]!);
        Assert.Equal([1, 2, 3], all["nodes"]!.AsArray().Select(static node => (int)node!["nodeId"]!));
        Assert.Equal([1, 2, 3], all["nodes"]!.AsArray().Select(static node => (int)node!["status"]!["nodeId"]!));
    }

    [Fact]
    public async Task The_status_for_nodes_is_closed_to_users_and_open_to_nodes()
    {
        Assert.Equal(
            HttpStatusCode.Unauthorized, (await cluster.AskAsync(null, "GET", AccessPolicies.NodeStatusPath)).Status);
        Assert.Equal(
            HttpStatusCode.Forbidden, (await cluster.AskAsync("root", "GET", AccessPolicies.NodeStatusPath)).Status);

        string secret = cluster.Embedded.Nodes[0].Access.Credential.Value!;
        using HttpResponseMessage answer = await AskAsync(
            AccessPolicies.NodeStatusPath, (NodeCredential.Header, secret));
        Assert.Equal(HttpStatusCode.OK, answer.StatusCode);
    }

    [Fact]
    public async Task A_refused_call_of_the_page_opens_no_dialog_of_the_browser()
    {
        string wrong = "Basic " + Convert.ToBase64String(Encoding.UTF8.GetBytes("root:wrong"));
        HttpResponseMessage? answer = null;
        await Wait.UntilAsync(async () =>
        {
            answer?.Dispose();
            answer = await AskAsync(
                "/v1/admin/whoami", ("authorization", wrong), (SignInRefusals.PageHeader, "1"));
            return answer.StatusCode != HttpStatusCode.ServiceUnavailable;
        });
        Assert.Equal(HttpStatusCode.Unauthorized, answer!.StatusCode);
        Assert.Equal("Bearer", Assert.Single(answer.Headers.WwwAuthenticate).ToString());
        answer.Dispose();
    }

    [Fact]
    public async Task A_node_that_serves_no_page_still_answers_the_pages_of_others()
    {
        await using EmbeddedCluster off = await EmbeddedCluster.StartAsync(1, configure: static options => options with
        {
            Access = new AccessOptions { ServesPage = false },
        }).WaitAsync(Wait.Longest);
        Uri node = off.Nodes[0].Options.Advertise;
        foreach (string path in (string[])["/ui", "/ui/app.js", "/ui/status"])
        {
            using HttpResponseMessage answer = await AskAsync(path, node: node);
            Assert.Equal(HttpStatusCode.NotFound, answer.StatusCode);
        }

        using HttpResponseMessage status = await AskAsync(AccessPolicies.NodeStatusPath, node: node);
        Assert.Equal(HttpStatusCode.Forbidden, status.StatusCode);
    }

    private Task<HttpResponseMessage> AskAsync(string path, params (string Name, string Value)[] headers) =>
        AskAsync(path, Node, headers);

    private async Task<HttpResponseMessage> AskAsync(
        string path, Uri node, params (string Name, string Value)[] headers)
    {
        using HttpRequestMessage request = new(HttpMethod.Get, new Uri(node, path));
        foreach ((string name, string value) in headers)
        {
            request.Headers.TryAddWithoutValidation(name, value);
        }

        return await _invoker.SendAsync(request, CancellationToken.None).WaitAsync(Wait.Longest);
    }
}
