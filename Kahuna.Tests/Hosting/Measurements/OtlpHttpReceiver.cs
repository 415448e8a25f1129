using System.Net;
using System.Text;
using Kahuna.Tests.Api.Grpc;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Http;

namespace Kahuna.Tests.Hosting.Measurements;

/// <summary>
/// A receiver of the OpenTelemetry protocol over HTTP/1.1 that keeps what it gets. Owned by one test; any thread.
/// </summary>
internal sealed class OtlpHttpReceiver : IAsyncDisposable
{
    private readonly WebApplication _app;
    private readonly Lock _lock = new();
    private readonly List<Request> _requests = [];

    private OtlpHttpReceiver(WebApplication app) => _app = app;

    public Uri Address => new(_app.Urls.Single());

    /// <summary>Answers; null: with status 200.</summary>
    public Func<HttpContext, Task>? Answer { get; set; }

    /// <summary>The requests so far, those included that are not answered yet.</summary>
    public Request[] Requests
    {
        get
        {
            lock (_lock)
            {
                return [.. _requests];
            }
        }
    }

    /// <param name="isTls">With a certificate of its own that no system trusts.</param>
    public static async Task<OtlpHttpReceiver> StartAsync(bool isTls = false)
    {
        WebApplicationBuilder builder = WebApplication.CreateEmptyBuilder(new WebApplicationOptions());
        builder.WebHost.UseKestrelCore().ConfigureKestrel(kestrel => kestrel.Listen(IPAddress.Loopback, 0, listen =>
        {
            if (isTls)
            {
                listen.UseHttps(TestCertificate.Instance);
            }
        }));
        WebApplication app = builder.Build();
        OtlpHttpReceiver receiver = new(app);
        app.Run(receiver.AnswerAsync);
        await app.StartAsync();
        return receiver;
    }

    public ValueTask DisposeAsync() => _app.DisposeAsync();

    private async Task AnswerAsync(HttpContext http)
    {
        using MemoryStream body = new();
        await http.Request.Body.CopyToAsync(body);
        lock (_lock)
        {
            _requests.Add(new Request(
                $"{http.Request.Method} {http.Request.Path}",
                http.Request.ContentType ?? "",
                http.Request.Headers["api-key"].ToString(),
                Encoding.Latin1.GetString(body.ToArray())));
        }

        await (Answer?.Invoke(http) ?? Task.CompletedTask);
    }

    /// <summary>What was sent.</summary>
    internal sealed record Request(string Line, string Format, string Key, string Body);
}
