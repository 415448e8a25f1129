using System.Collections.Concurrent;
using System.Net;
using System.Security.Cryptography.X509Certificates;
using Kahuna.Tests.Api.Grpc;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Hosting.Server;
using Microsoft.AspNetCore.Hosting.Server.Features;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Https;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Logging;

namespace Kahuna.Tests.Client.Access;

/// <summary>
/// A server of HTTP/2 on a free loopback port that notes who asks and answers as the test says. Owned by one test.
/// </summary>
internal sealed class CredentialHost : IAsyncDisposable
{
    private readonly WebApplication _app;

    private CredentialHost(WebApplication app)
    {
        _app = app;
        Address = new Uri(
            app.Services.GetRequiredService<IServer>().Features.Get<IServerAddressesFeature>()!.Addresses.Single());
    }

    public Uri Address { get; }

    /// <summary>Path, authorization header and thumbprint of the client certificate of each request.</summary>
    public ConcurrentQueue<(string Path, string? Authorization, string? Certificate)> Asked { get; } = new();

    /// <summary>Answers a request whose body was not read.</summary>
    public Func<HttpContext, Task> Answer { get; set; } = static _ => Task.CompletedTask;

    public static async Task<CredentialHost> StartAsync()
    {
        WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
        builder.Logging.ClearProviders();
        builder.WebHost.UseKestrelHttpsConfiguration();
        builder.WebHost.ConfigureKestrel(static kestrel => kestrel.Listen(IPAddress.Loopback, 0, static listen =>
        {
            listen.Protocols = HttpProtocols.Http2;
            listen.UseHttps(static https =>
            {
                https.ServerCertificate = TestCertificate.Instance;
                https.ClientCertificateMode = ClientCertificateMode.AllowCertificate;
                https.ClientCertificateValidation = static (_, _, _) => true;
            });
        }));
        WebApplication app = builder.Build();
        CredentialHost? host = null;
        app.Run(context => host!.OnAsync(context));
        await app.StartAsync();
        return host = new CredentialHost(app);
    }

    /// <summary>Ends a response as gRPC does.</summary>
    public static void End(HttpContext context, int status, string message = "", string? outcome = null)
    {
        context.Response.AppendTrailer("grpc-status", $"{status}");
        context.Response.AppendTrailer("grpc-message", message);
        if (outcome is not null)
        {
            context.Response.AppendTrailer("kahuna-outcome", outcome);
        }
    }

    public ValueTask DisposeAsync() => _app.DisposeAsync();

    private Task OnAsync(HttpContext context)
    {
        string? authorization = context.Request.Headers.TryGetValue("authorization", out var given)
            ? given.ToString() : null;
        X509Certificate2? shown = context.Connection.ClientCertificate;
        Asked.Enqueue((context.Request.Path.Value!, authorization, shown?.Thumbprint));
        context.Response.ContentType = "application/grpc";
        return Answer(context);
    }
}
