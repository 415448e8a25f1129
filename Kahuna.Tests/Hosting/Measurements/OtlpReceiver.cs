using System.Net;
using System.Text;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Server.Kestrel.Core;

namespace Kahuna.Tests.Hosting.Measurements;

/// <summary>A receiver of the OpenTelemetry protocol over gRPC, without TLS, that keeps what it gets. Owned by one
/// test.</summary>
internal sealed class OtlpReceiver : IAsyncDisposable
{
    private readonly WebApplication _app;
    private readonly List<string> _received = [];

    private OtlpReceiver(WebApplication app) => _app = app;

    public Uri Address => new(_app.Urls.Single());

    /// <summary>The bodies of all requests, as text.</summary>
    public string Received
    {
        get
        {
            lock (_received)
            {
                return string.Concat(_received);
            }
        }
    }

    public static async Task<OtlpReceiver> StartAsync()
    {
        WebApplicationBuilder builder = WebApplication.CreateEmptyBuilder(new WebApplicationOptions());
        builder.WebHost.UseKestrelCore().ConfigureKestrel(static kestrel => kestrel.Listen(
            IPAddress.Loopback, 0, static listen => listen.Protocols = HttpProtocols.Http2));
        WebApplication app = builder.Build();
        OtlpReceiver receiver = new(app);
        app.Run(receiver.AnswerAsync);
        await app.StartAsync();
        return receiver;
    }

    public ValueTask DisposeAsync() => _app.DisposeAsync();

    private async Task AnswerAsync(HttpContext context)
    {
        string path = context.Request.Path.Value!;
        Assert.Contains(
            path,
            (string[])
            [
                "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
                "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
            ]);
        using MemoryStream body = new();
        await context.Request.Body.CopyToAsync(body);
        lock (_received)
        {
            _received.Add(Encoding.Latin1.GetString(body.ToArray()));
        }

        context.Response.ContentType = "application/grpc";
        await context.Response.Body.WriteAsync(new byte[5]);
        context.Response.AppendTrailer("grpc-status", "0");
    }
}
