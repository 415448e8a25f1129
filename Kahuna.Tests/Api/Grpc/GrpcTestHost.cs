using System.Net;
using Kahuna.Client.Wire.Grpc;
using Kahuna.Server.Api.Grpc;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Hosting.Server;
using Microsoft.AspNetCore.Hosting.Server.Features;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Logging;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>A Kestrel on a free loopback port with the binding under test. Owned by one test, which disposes it.</summary>
internal sealed class GrpcTestHost : IAsyncDisposable
{
    private readonly WebApplication _app;

    private GrpcTestHost(WebApplication app)
    {
        _app = app;
        Address = new Uri(app.Services.GetRequiredService<IServer>().Features.Get<IServerAddressesFeature>()!.Addresses.Single());
        Channel = new GrpcChannel(Address, new GrpcChannelOptions { Tls = TestCertificate.Trust });
    }

    public Uri Address { get; }

    /// <summary>A channel to this host, disposed with it.</summary>
    public GrpcChannel Channel { get; }

    /// <summary>Starts a host. Without <paramref name="services"/> it serves the kahuna.v1 services with handlers in memory.</summary>
    public static async Task<GrpcTestHost> StartAsync(Action<GrpcServer>? services = null, GrpcServerOptions? options = null, bool tls = true)
    {
        WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
        builder.Logging.ClearProviders();
        builder.WebHost.ConfigureKestrel(kestrel => kestrel.Listen(IPAddress.Loopback, 0, listen =>
        {
            listen.Protocols = tls ? HttpProtocols.Http1AndHttp2 : HttpProtocols.Http2;
            if (tls)
            {
                listen.UseHttps(TestCertificate.Instance);
            }
        }));
        WebApplication app = builder.Build();
        GrpcServer server = new(options);
        (services ?? new InMemoryServices().Bind)(server);
        app.MapGrpc(server);
        app.Run(http => http.Response.WriteAsync("not grpc"));
        await app.StartAsync();
        return new GrpcTestHost(app);
    }

    public Task StopAsync() => _app.StopAsync();

    public async ValueTask DisposeAsync()
    {
        await Channel.DisposeAsync();
        await _app.DisposeAsync();
    }
}
