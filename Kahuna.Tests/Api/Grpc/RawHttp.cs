using System.Net;
using System.Net.Http.Headers;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>Requests below the level of gRPC, to send what no gRPC client sends. Any thread.</summary>
internal static class RawHttp
{
    public static HttpMessageInvoker Invoker() =>
        new(new SocketsHttpHandler { SslOptions = TestCertificate.Trust, AllowAutoRedirect = false, UseProxy = false });

    /// <summary>Takes any certificate.</summary>
    public static HttpMessageInvoker AnyServer() =>
        new(new SocketsHttpHandler
        {
            SslOptions = new() { RemoteCertificateValidationCallback = static (_, _, _, _) => true },
            AllowAutoRedirect = false,
            UseProxy = false,
        });

    public static HttpRequestMessage Request(
        Uri address, string path, byte[] body, string contentType = "application/grpc")
    {
        HttpRequestMessage request = new(HttpMethod.Post, new Uri(address, path))
        {
            Version = HttpVersion.Version20,
            VersionPolicy = HttpVersionPolicy.RequestVersionExact,
            Content = new ByteArrayContent(body),
        };
        request.Headers.TryAddWithoutValidation("te", "trailers");
        request.Content.Headers.ContentType = MediaTypeHeaderValue.Parse(contentType);
        return request;
    }

    /// <summary>grpc-status from the headers or, after the body, from the trailers.</summary>
    public static async Task<string?> StatusAsync(HttpResponseMessage response)
    {
        if (response.Headers.TryGetValues("grpc-status", out IEnumerable<string>? early))
        {
            return early.Single();
        }

        await response.Content.ReadAsByteArrayAsync();
        return response.TrailingHeaders.TryGetValues("grpc-status", out IEnumerable<string>? late)
            ? late.Single()
            : null;
    }
}
