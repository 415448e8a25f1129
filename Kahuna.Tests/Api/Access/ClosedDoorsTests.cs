using System.Net;
using System.Text;
using System.Text.Json.Nodes;
using Kahuna.Server.Api.Access;
using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Options;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Tests.Client;
using Microsoft.AspNetCore.Grpc.JsonTranscoding;
using Microsoft.AspNetCore.Routing;

namespace Kahuna.Tests.Api.Access;

/// <summary>
/// A whole node with authentication, and somebody who shows nothing, or nonsense, at each of its doors.
/// </summary>
public sealed class ClosedDoorsTests : IAsyncLifetime
{
    private EmbeddedCluster? _cluster;

    private KahunaNode Node => _cluster!.Nodes[0];

    public async Task InitializeAsync() =>
        _cluster = await EmbeddedCluster.StartAsync(1, configure: static options => options with
        {
            Access = new AccessOptions { Mode = AuthMode.Required, IsModeGiven = true },
        }).WaitAsync(Wait.Longest);

    public async Task DisposeAsync() => await _cluster!.DisposeAsync();

    [Theory]
    [InlineData("application/grpc", null)]
    [InlineData("application/grpc-web", null)]
    [InlineData("application/grpc", "Bearer a.b.c")]
    [InlineData("application/grpc", "Basic YW5uOndyb25n")]
    public async Task Every_method_is_closed_but_those_about_health(string contentType, string? authorization)
    {
        using HttpMessageInvoker invoker = RawHttp.AnyServer();
        foreach (string name in AccessPolicies.Names.Where(static name => name.Contains('.', StringComparison.Ordinal)
            && name != "/openapi.json"))
        {
            using HttpRequestMessage request = RawHttp.Request(
                Node.Options.Advertise, name, [0, 0, 0, 0, 0], contentType);
            if (authorization is not null)
            {
                request.Headers.TryAddWithoutValidation("authorization", authorization);
            }

            using CancellationTokenSource limit = new(Wait.Longest);
            using HttpResponseMessage response = await invoker.SendAsync(request, limit.Token);
            if (AccessPolicies.Find(name) == AccessPolicy.Open)
            {
                // One that watches has sent its headers and goes on.
                Assert.False(response.Headers.Contains("grpc-status"), name);
                continue;
            }

            // A node that may not know who is a user now says no more than that.
            string? status = await RawHttp.StatusAsync(response);
            Assert.True(status is "16" or "8" || (status == "14" && authorization is not null), $"{name}: {status}");
        }
    }

    [Fact]
    public async Task Every_route_of_json_is_closed_and_says_so_in_json()
    {
        using HttpMessageInvoker invoker = RawHttp.AnyServer();
        int routes = 0;
        foreach (RouteEndpoint route in Routes().Where(static endpoint =>
            endpoint.Metadata.GetMetadata<GrpcJsonTranscodingMetadata>() is not null))
        {
            string method = route.Metadata.GetMetadata<IHttpMethodMetadata>()!.HttpMethods[0];
            using HttpRequestMessage request = new(
                new HttpMethod(method), new Uri(Node.Options.Advertise, PathOf(route)))
            {
                Content = method is "GET" or "DELETE"
                    ? null
                    : new StringContent("{}", Encoding.UTF8, "application/json"),
            };
            using HttpResponseMessage response = await invoker.SendAsync(request, CancellationToken.None);
            string text = await response.Content.ReadAsStringAsync();

            Assert.True(response.StatusCode == HttpStatusCode.Unauthorized, $"{PathOf(route)}: {response.StatusCode}");
            JsonNode error = JsonNode.Parse(text)!;
            Assert.Equal(16, (int)error["code"]!);
            Assert.Equal("UNAUTHENTICATED", (string?)error["details"]![0]!["reason"]);
            Assert.Equal("did-not-happen", (string?)error["details"]![0]!["metadata"]!["outcome"]);
            Assert.Equal(2, response.Headers.WwwAuthenticate.Count);
            routes++;
        }

        Assert.True(routes > 10);
    }

    [Theory]
    [InlineData("/healthz", HttpStatusCode.OK)]
    [InlineData("/readyz", HttpStatusCode.OK)]
    [InlineData("/openapi.json", HttpStatusCode.OK)]
    [InlineData("/ui", HttpStatusCode.OK)]
    [InlineData("/ui/app.js", HttpStatusCode.OK)]
    [InlineData("/ui/status", HttpStatusCode.Unauthorized)]
    [InlineData("/status", HttpStatusCode.Unauthorized)]
    [InlineData("/status/node", HttpStatusCode.Unauthorized)]
    [InlineData("/ui/history", HttpStatusCode.Unauthorized)]
    [InlineData("/ui/slow", HttpStatusCode.Unauthorized)]
    [InlineData("/status/node/slow", HttpStatusCode.Unauthorized)]
    [InlineData("/status/node/queue", HttpStatusCode.Unauthorized)]
    [InlineData("/ui/sessions", HttpStatusCode.Unauthorized)]
    [InlineData("/ui/queue", HttpStatusCode.Unauthorized)]
    [InlineData("/status/node/history", HttpStatusCode.Unauthorized)]
    [InlineData("/status/slow", HttpStatusCode.Unauthorized)]
    [InlineData("/", HttpStatusCode.Unauthorized)]
    [InlineData("/metrics", HttpStatusCode.Unauthorized)]
    public async Task Paths_without_names_and_values_are_open_and_no_others(string path, HttpStatusCode expected)
    {
        using HttpMessageInvoker invoker = RawHttp.AnyServer();
        using HttpRequestMessage request = new(HttpMethod.Get, new Uri(Node.Options.Advertise, path));
        using HttpResponseMessage response = await invoker.SendAsync(request, CancellationToken.None);

        Assert.Equal(expected, response.StatusCode);
    }

    private IEnumerable<RouteEndpoint> Routes() =>
        Node.Access.Routes!.DataSources.SelectMany(static source => source.Endpoints).OfType<RouteEndpoint>();

    /// <summary>A path of the route, with a name for each of its parameters.</summary>
    private static string PathOf(RouteEndpoint route) => "/" + string.Join('/', route.RoutePattern.PathSegments.Select(
        static segment => string.Concat(segment.Parts.Select(static part =>
            part is Microsoft.AspNetCore.Routing.Patterns.RoutePatternLiteralPart literal ? literal.Content
            : part is Microsoft.AspNetCore.Routing.Patterns.RoutePatternSeparatorPart separator ? separator.Content
            : "x"))));
}
