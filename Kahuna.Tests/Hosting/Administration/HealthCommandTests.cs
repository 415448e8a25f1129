using System.Collections;
using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Administration;
using Kahuna.Server.Hosting.Certificates;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Hosting.Server;
using Microsoft.AspNetCore.Hosting.Server.Features;
using Microsoft.AspNetCore.Server.Kestrel.Https;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Logging;

namespace Kahuna.Tests.Hosting.Administration;

/// <summary>The verb of the server that asks whether a node is ready, against the end points over TLS.</summary>
public sealed class HealthCommandTests : IAsyncLifetime
{
    private static readonly Hashtable s_nothing = [];

    private readonly TemporaryDirectory _directory = new();
    private WebApplication? _app;
    private Uri? _address;

    /// <summary>Questions until the node is ready.</summary>
    private int _questionsLeft;

    public async Task InitializeAsync()
    {
        NodeTls tls = new DevelopmentCertificates(_directory.Path, TimeProvider.System).Ensure([]);
        WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
        builder.Logging.ClearProviders();
        builder.WebHost.UseKestrelHttpsConfiguration();
        builder.WebHost.ConfigureKestrel(kestrel => kestrel.Listen(IPAddress.Loopback, 0, listen => listen.UseHttps(
            new TlsHandshakeCallbackOptions
            {
                OnConnection = _ => ValueTask.FromResult(
                    new SslServerAuthenticationOptions { ServerCertificateContext = tls.Certificate }),
            })));
        _app = builder.Build();
        HealthEndpoints.Map(_app, () => (Interlocked.Decrement(ref _questionsLeft) < 0, "no leader"));
        await _app.StartAsync();
        _address = new Uri(
            _app.Services.GetRequiredService<IServer>().Features.Get<IServerAddressesFeature>()!.Addresses.Single());
    }

    public async Task DisposeAsync()
    {
        await _app!.DisposeAsync();
        _directory.Dispose();
    }

    [Fact]
    public async Task A_ready_node_is_0() => Assert.Equal(0, await AskAsync());

    [Fact]
    public async Task A_node_that_is_not_ready_is_1_and_alive_all_the_same()
    {
        _questionsLeft = int.MaxValue;
        Assert.Equal(1, await AskAsync());
        Assert.Equal(0, await AskAsync("--alive"));
    }

    [Fact]
    public async Task It_can_wait_until_the_node_is_ready()
    {
        _questionsLeft = 2;
        Assert.Equal(0, await AskAsync("--wait", "86400"));
        Assert.Equal(-1, _questionsLeft);
    }

    [Fact]
    public async Task A_port_without_a_node_is_1()
    {
        // Bound and not listening: nothing else can take the port, and connections are refused.
        using Socket taken = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        taken.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        Assert.Equal(1, await HealthCommand.RunAsync(["--endpoint", $"https://{taken.LocalEndPoint}"], s_nothing));
    }

    [Fact]
    public async Task The_variables_of_a_node_say_where_it_listens()
    {
        int port = _address!.Port;
        Assert.Equal(0, await HealthCommand.RunAsync(
            [], new Hashtable { ["KAHUNA_LISTEN"] = $"https://127.0.0.1:{port}" }));

        // The name is of no use, since all interfaces are listened on.
        Assert.Equal(0, await HealthCommand.RunAsync([], new Hashtable
        {
            ["KAHUNA_NODE_ID"] = "1",
            ["KAHUNA_PEERS"] = $"1=https://node.invalid:{port}",
            ["KAHUNA_CLUSTER_SECRET_FILE"] = _directory.File("secret", "0123456789abcdef"),
            ["KAHUNA_AUTH"] = "required",
        }));
        Assert.Equal(1, await HealthCommand.RunAsync([], new Hashtable { ["KAHUNA_LISTEN"] = "nowhere" }));
    }

    [Theory]
    [InlineData("--endpoint", "http://127.0.0.1:1")]
    [InlineData("--endpoint", "nowhere")]
    [InlineData("--wait", "-1")]
    [InlineData("--wait", "86401")]
    [InlineData("--no-such-option")]
    public async Task Wrong_options_are_1(params string[] arguments) =>
        Assert.Equal(1, await HealthCommand.RunAsync(arguments, s_nothing));

    private Task<int> AskAsync(params string[] arguments) => HealthCommand.RunAsync(
        ["--endpoint", _address!.GetLeftPart(UriPartial.Authority), .. arguments], s_nothing);
}
