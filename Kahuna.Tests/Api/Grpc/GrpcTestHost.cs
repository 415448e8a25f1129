using System.Net;
using System.Net.Security;
using System.Security.Cryptography.X509Certificates;
using Grpc.Net.Client;
using Kahuna.Server.Api.Access;
using Kahuna.Server.Api.Calls;
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

/// <summary>
/// The product's endpoint, with its limits and its listener, on a free loopback port. Owned by one test, which disposes
/// it.
/// </summary>
internal sealed class GrpcTestHost : IAsyncDisposable
{
    private readonly WebApplication _app;
    private readonly PeerLinks _links;

    private GrpcTestHost(WebApplication app, PeerLinks links)
    {
        _app = app;
        _links = links;
        Address = new Uri(
            app.Services.GetRequiredService<IServer>().Features.Get<IServerAddressesFeature>()!.Addresses.Single());
        Channel = TestChannels.To(Address);
    }

    public Uri Address { get; }

    /// <summary>A channel to this host, disposed with it.</summary>
    public GrpcChannel Channel { get; }

    /// <summary>
    /// Starts a host. Without <paramref name="services"/> it serves the kahuna.v1 services with handlers in memory.
    /// <paramref name="loggers"/> gets what the HTTP server says.
    /// </summary>
    public static async Task<GrpcTestHost> StartAsync(
        Action<TestServices>? services = null,
        CallLimits? options = null,
        bool tls = true,
        ILogger? log = null,
        ILoggerFactory? loggers = null,
        Func<ConnectionDelegate, ConnectionDelegate>? middleware = null,
        Action<IServiceCollection>? configure = null,
        Action<WebApplication>? map = null,
        AccessMiddleware? access = null,
        Func<X509Certificate2Collection>? clientAuthorities = null,
        IReadOnlyList<string>? nodeHosts = null,
        X509Certificate2Collection? nodeAuthorities = null)
    {
        WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
        builder.Logging.ClearProviders();
        if (loggers is not null)
        {
            builder.Services.AddSingleton(loggers);
        }

        builder.WebHost.UseKestrelHttpsConfiguration();
        TlsSource certificate = new(
            SslStreamCertificateContext.Create(TestCertificate.Instance, null), nodeAuthorities);
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
                    listen.UseKahunaTls(certificate, new ClientCertificates
                    {
                        UserAuthorities = clientAuthorities,
                        NodeHosts = nodeHosts ?? [],
                    });
                }
            });
        });
        PeerLinks links = NoPeers(certificate);
        builder.Services.AddKahunaPeers(links);
        TestServices made = new();
        (services ?? new InMemoryServices().Bind)(made);
        CallLimits limits = options ?? new CallLimits();
        made.AddTo(builder.Services, limits);
        configure?.Invoke(builder.Services);
        WebApplication app = builder.Build();
        made.MapTo(app, limits, log ?? NullLogger.Instance, access);
        map?.Invoke(app);
        app.MapFallback(http => http.Response.WriteAsync("not grpc"));
        await app.StartAsync();
        return new GrpcTestHost(app, links);
    }

    public Task StopAsync() => _app.StopAsync();

    public async ValueTask DisposeAsync()
    {
        Channel.Dispose();
        await _app.DisposeAsync();
        await _links.DisposeAsync();
    }

    /// <summary>Links of a cluster of one: they take no connection, and their listener is the product's.</summary>
    private static PeerLinks NoPeers(TlsSource certificate) => new(
        new PeerLinksOptions
        {
            Self = new NodeId(1),
            ClusterId = "test",
            Partitions = 1,
            Secrets = new ClusterSecrets(),
            Peers = [],
            Directory = new FixedDirectory(1),
            Tls = certificate,
            FatalErrors = RethrownErrors.Shared,
        },
        new FrameRecorder(),
        NullLoggerFactory.Instance);
}
