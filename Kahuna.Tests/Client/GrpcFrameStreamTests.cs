using System.Net;
using System.Net.Http.Headers;
using Kahuna.Client.Connection;

namespace Kahuna.Tests.Client;

/// <summary>
/// What a stream of the network sends, and what it says of a node that refuses or ends it. The HTTP client is a fake.
/// </summary>
public sealed class GrpcFrameStreamTests
{
    private static readonly Uri s_method = new("https://node1:8082/kahuna.v1.Cluster/Exchange");

    [Theory]
    [InlineData(200, "application/grpc", "14", "stopping", "Unavailable: stopping")]
    [InlineData(200, "application/grpc", "8", "", "ResourceExhausted")]
    [InlineData(200, "application/grpc", "9", "Schl%C3%BCssel %C2%AB%CE%BA%C2%BB 100 %25 %zz", "FailedPrecondition: Schlüssel «κ» 100 % %zz")]
    [InlineData(200, "application/grpc", "77", "new", "Unknown: The server answered with the status '77', which is not defined. new")]
    [InlineData(200, "application/grpc", "x", null, "Unknown: The server answered with the status 'x', which is not defined.")]
    [InlineData(503, "text/html", null, null, "Unavailable: The server answered with HTTP status 503, not with gRPC.")]
    [InlineData(404, "text/html", null, null, "Unimplemented: The server answered with HTTP status 404, not with gRPC.")]
    [InlineData(302, "text/html", null, null, "Unknown: The server answered with HTTP status 302, not with gRPC.")]
    [InlineData(200, "text/html", null, null, "Unknown: The server answered with the content type 'text/html', not with gRPC.")]
    [InlineData(200, "application/grpc-web", null, null, "Unknown: The server answered with the content type 'application/grpc-web', not with gRPC.")]
    [InlineData(503, "text/html", "7", "no", "PermissionDenied: no")]
    public async Task A_refusal_says_why(int http, string type, string? status, string? message, string text)
    {
        using HttpResponseMessage response = Response(http, type);
        Add(response.Headers, status, message);
        StreamRefusedException refused = await Assert.ThrowsAsync<StreamRefusedException>(() => OpenAsync(response));
        Assert.Equal(text, refused.Message);
    }

    [Theory]
    [InlineData("0", null, null)]
    [InlineData("0", "well", null)]
    [InlineData("14", "The%20server is stopping.", "Unavailable: The server is stopping.")]
    [InlineData(null, null, "Unknown: The response ended without a grpc-status.")]
    public async Task The_end_of_a_stream_has_the_reason_of_its_trailers(
        string? status, string? message, string? reason)
    {
        using HttpResponseMessage response = Response(200, "application/grpc+proto");
        await using GrpcFrameStream stream = await OpenAsync(response);
        Assert.Equal(0, await stream.ReadAsync(new byte[1]));
        Add(response.TrailingHeaders, status, message);
        Assert.Equal(reason, await stream.EndReasonAsync());
    }

    [Fact]
    public async Task A_stream_without_any_reply_may_end_well()
    {
        using HttpResponseMessage response = Response(200, "application/grpc");
        Add(response.Headers, "0", null);
        await using GrpcFrameStream stream = await OpenAsync(response);
        Assert.Equal(0, await stream.ReadAsync(new byte[1]));
        Assert.Null(await stream.EndReasonAsync());
    }

    [Fact]
    public async Task The_request_is_one_of_gRPC_with_the_header_that_is_given()
    {
        HttpRequestMessage? sent = null;
        await using GrpcFrameStream stream = await OpenAsync(
            Response(200, "application/grpc"), request => sent = request);
        Assert.Equal(
            (HttpMethod.Post, s_method, HttpVersion.Version20, HttpVersionPolicy.RequestVersionExact),
            (sent!.Method, sent.RequestUri, sent.Version, sent.VersionPolicy));
        Assert.Equal("application/grpc", sent.Content!.Headers.ContentType!.ToString());
        Assert.Null(sent.Content.Headers.ContentLength);
        Assert.Matches(
            @"^User-Agent: kahuna-dotnet/\d+\.\d+\.\d+\r?\nTE: trailers\r?\nx-own: 1\r?\n$", sent.Headers.ToString());
    }

    [Fact]
    public async Task Aborting_ends_reads_and_writes_now_and_later()
    {
        await using GrpcFrameStream stream = await OpenAsync(Response(200, "application/grpc"));
        stream.Abort();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(async () => await stream.ReadAsync(new byte[1]));
        await Assert.ThrowsAnyAsync<OperationCanceledException>(async () => await stream.WriteAsync(new byte[1]));
        await stream.DisposeAsync();
        stream.Abort();
    }

    private static HttpResponseMessage Response(int http, string type) => new((HttpStatusCode)http)
    {
        Content = new ByteArrayContent([]) { Headers = { ContentType = new MediaTypeHeaderValue(type) } },
    };

    private static void Add(HttpResponseHeaders headers, string? status, string? message)
    {
        foreach ((string name, string? value) in new[] { ("grpc-status", status), ("grpc-message", message) })
        {
            if (value is not null)
            {
                headers.TryAddWithoutValidation(name, value);
            }
        }
    }

    private static async Task<GrpcFrameStream> OpenAsync(
        HttpResponseMessage response, Action<HttpRequestMessage>? onSent = null)
    {
        using HttpMessageInvoker connection = new(new FakeHandler(response, onSent));
        return await GrpcFrameStream.OpenAsync(connection, s_method, ("x-own", "1"), CancellationToken.None)
            .WaitAsync(Wait.Longest);
    }

    /// <summary>Takes the request's body and answers at once. Used by one task.</summary>
    private sealed class FakeHandler(HttpResponseMessage response, Action<HttpRequestMessage>? onSent)
        : HttpMessageHandler
    {
        protected override Task<HttpResponseMessage> SendAsync(
            HttpRequestMessage request, CancellationToken cancellationToken)
        {
            _ = request.Content!.CopyToAsync(new MemoryStream(), cancellationToken);
            onSent?.Invoke(request);
            return Task.FromResult(response);
        }
    }
}
