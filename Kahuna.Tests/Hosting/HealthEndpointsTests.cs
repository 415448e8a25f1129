using System.Net;
using System.Net.Security;
using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Certificates;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Hosting.Server;
using Microsoft.AspNetCore.Hosting.Server.Features;
using Microsoft.AspNetCore.Server.Kestrel.Https;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Logging;

namespace Kahuna.Tests.Hosting;

/// <summary>The two endpoints that machines watch, over both HTTP versions and TLS.</summary>
public sealed class HealthEndpointsTests
{
    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    public async Task Both_answer_over_both_versions(int version)
    {
        using TemporaryDirectory directory = new();
        NodeTls tls = new DevelopmentCertificates(directory.Path, TimeProvider.System).Ensure([]);
        bool ready = false;
        WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
        builder.Logging.ClearProviders();
        builder.WebHost.UseKestrelHttpsConfiguration();
        builder.WebHost.ConfigureKestrel(kestrel => kestrel.Listen(IPAddress.Loopback, 0, listen => listen.UseHttps(
            new TlsHandshakeCallbackOptions
            {
                OnConnection = _ => ValueTask.FromResult(
                    new SslServerAuthenticationOptions { ServerCertificateContext = tls.Certificate }),
            })));
        await using WebApplication app = builder.Build();
        HealthEndpoints.Map(app, () => (ready, "no leader"));
        await app.StartAsync();
        string address =
            app.Services.GetRequiredService<IServer>().Features.Get<IServerAddressesFeature>()!.Addresses.Single();

        using HttpClient client = new(
            new SocketsHttpHandler { SslOptions = { RemoteCertificateValidationCallback = (_, _, _, _) => true } })
        {
            BaseAddress = new Uri(address),
            DefaultRequestVersion = new Version(version, version == 1 ? 1 : 0),
            DefaultVersionPolicy = HttpVersionPolicy.RequestVersionExact,
        };
        Assert.Equal((200, "ok\n"), await Get(client, "/healthz"));
        Assert.Equal((503, "not ready: no leader\n"), await Get(client, "/readyz"));
        ready = true;
        Assert.Equal((200, "ready\n"), await Get(client, "/readyz"));
        using HttpResponseMessage head = await client.SendAsync(new HttpRequestMessage(HttpMethod.Head, "/readyz")
        {
            Version = client.DefaultRequestVersion,
            VersionPolicy = HttpVersionPolicy.RequestVersionExact,
        });
        Assert.Equal(HttpStatusCode.OK, head.StatusCode);
    }

    private static async Task<(int Status, string Text)> Get(HttpClient client, string path)
    {
        using HttpResponseMessage response = await client.GetAsync(new Uri(path, UriKind.Relative));
        return ((int)response.StatusCode, await response.Content.ReadAsStringAsync());
    }
}
