using System.Net;
using System.Net.Security;
using Kahuna.Client.Wire.Grpc;
using Kahuna.Server.Api.Grpc;
using Kahuna.Server.Primitives;
using Kahuna.Server.Transport;
using Kahuna.Tests.Partitions;
using Kahuna.Tests.Transport;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Hosting.Server;
using Microsoft.AspNetCore.Hosting.Server.Features;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Logging.Abstractions;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>The product's endpoint, with its limits and its listener, on a free loopback port. Owned by one test, which disposes it.</summary>
internal sealed class GrpcTestHost : IAsyncDisposable
{
    private readonly WebApplication _app;
    private readonly PeerLinks _links;

    private GrpcTestHost(WebApplication app, PeerLinks links)
    {
        _app = app;
        _links = links;
        Address = new Uri(app.Services.GetRequiredService<IServer>().Features.Get<IServerAddressesFeature>()!.Addresses.Single());
        Channel = new GrpcChannel(Address, new GrpcChannelOptions { Tls = TestCertificate.Trust });
    }

    public Uri Address { get; }

    /// <summary>A channel to this host, disposed with it.</summary>
    public GrpcChannel Channel { get; }

    /// <summary>Starts a host. Without <paramref name="services"/> it serves the kahuna.v1 services with handlers in memory. <paramref name="loggers"/> gets what the HTTP server says.</summary>
    public static async Task<GrpcTestHost> StartAsync(
        Action<GrpcServer>? services = null,
        GrpcServerOptions? options = null,
        bool tls = true,
        ILogger? log = null,
        ILoggerFactory? loggers = null,
        Func<ConnectionDelegate, ConnectionDelegate>? middleware = null)
    {
        WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
        builder.Logging.ClearProviders();
        if (loggers is not null)
        {
            builder.Services.AddSingleton(loggers);
        }

        builder.WebHost.UseKestrelHttpsConfiguration();
        TlsSource certificate = new(SslStreamCertificateContext.Create(TestCertificate.Instance, null));
        builder.WebHost.ConfigureKestrel(kestrel =>
        {
            kestrel.ConfigureKahunaLimits();
            kestrel.Listen(IPAddress.Loopback, 0, listen =>
            {
                listen.Protocols = HttpProtocols.Http2;
                if (middleware is not null)
                {
                    listen.Use(middleware);
                }

                if (tls)
                {
                    listen.UseKahunaTls(certificate);
                }
            });
        });
        PeerLinks links = NoPeers(certificate);
        builder.Services.AddKahunaPeers(links);
        WebApplication app = builder.Build();
        GrpcServer server = new(options, log);
        (services ?? new InMemoryServices().Bind)(server);
        app.MapGrpc(server);
        app.Run(http => http.Response.WriteAsync("not grpc"));
        await app.StartAsync();
        return new GrpcTestHost(app, links);
    }

    public Task StopAsync() => _app.StopAsync();

    public async ValueTask DisposeAsync()
    {
        await Channel.DisposeAsync();
        await _app.DisposeAsync();
        await _links.DisposeAsync();
    }

    /// <summary>Links of a cluster of one: they take no connection, and their listener is the product's.</summary>
    private static PeerLinks NoPeers(TlsSource certificate) => new(
        new PeerLinksOptions { Self = new NodeId(1), ClusterId = "test", Partitions = 1, Secret = ReadOnlyMemory<byte>.Empty, Peers = [], Directory = new FixedDirectory(1), Tls = certificate, FatalErrors = RethrownErrors.Shared },
        new FrameRecorder(),
        NullLoggerFactory.Instance);
}
