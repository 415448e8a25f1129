using System.Net;
using System.Text;
using Kahuna.Server.Hosting.Certificates;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Transport;
using Kahuna.Tests.Partitions;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Hosting.Server;
using Microsoft.AspNetCore.Hosting.Server.Features;
using Microsoft.AspNetCore.Http;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Logging;

namespace Kahuna.Tests.Transport;

/// <summary>The links of one node behind a real Kestrel endpoint on a free port. Owned by a test.</summary>
internal sealed class TestNode : IAsyncDisposable
{
    public static readonly byte[] Secret = Encoding.ASCII.GetBytes("correct horse battery staple");

    private readonly WebApplication _app;

    private TestNode(WebApplication app, PeerLinks links, FrameRecorder frames, LogRecorder log)
    {
        (_app, Links, Frames, Log) = (app, links, frames, log);
        Address = new Uri(
            app.Services.GetRequiredService<IServer>().Features.Get<IServerAddressesFeature>()!.Addresses.Single());
    }

    public PeerLinks Links { get; }

    public FrameRecorder Frames { get; }

    public LogRecorder Log { get; }

    public Uri Address { get; }

    /// <summary>
    /// The options of a node among nodes 1, 2 and 3; the address of node 1 is the only one that is ever dialled.
    /// </summary>
    public static PeerLinksOptions Options(ushort id, NodeTls tls, Uri? node1 = null) => new()
    {
        Self = new NodeId(id),
        ClusterId = "test",
        Partitions = 3,
        Secrets = new ClusterSecrets(Secret),
        Peers = [new(new NodeId(1), node1 ?? new Uri("https://127.0.0.1:1")), new(new NodeId(2), new Uri("https://127.0.0.1:1")), new(new NodeId(3), new Uri("https://127.0.0.1:1"))],
        Directory = new FixedDirectory(id),
        FatalErrors = new RecordedErrors(),
        Tls = new TlsSource(tls.Certificate, tls.TrustedRoots),
        ReconnectMin = TimeSpan.FromMilliseconds(5),
        ReconnectMax = TimeSpan.FromMilliseconds(50),
    };

    /// <param name="options">The node's options.</param>
    /// <param name="port">Where to listen; 0: any free port.</param>
    /// <param name="receiver">Takes the frames; null: they are recorded.</param>
    public static async Task<TestNode> StartAsync(
        PeerLinksOptions options, int port = 0, IPeerReceiver? receiver = null)
    {
        FrameRecorder frames = new();
        LogRecorder log = new();
        PeerLinks links = new(options, receiver ?? frames, log);
        WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
        builder.Logging.ClearProviders();
        builder.WebHost.UseKestrelHttpsConfiguration();
        builder.WebHost.ConfigureKestrel(
            kestrel => kestrel.Listen(IPAddress.Loopback, port, listen => listen.UseKahunaTls(options.Tls)));
        builder.Services.AddKahunaPeers(links);
        WebApplication app = builder.Build();
        app.MapGet("/", (HttpContext context) => context.Request.Protocol);
        await app.StartAsync();
        links.Start();
        return new TestNode(app, links, frames, log);
    }

    public bool Send(ushort to, ReadOnlySpan<byte> payload, bool isUrgent = false)
    {
        Kahuna.Wire.Buffers.ByteBuffer frame = Links.BeginFrame();
        frame.Append(payload);
        return Links.TrySend(new NodeId(to), frame, isUrgent);
    }

    public async ValueTask DisposeAsync()
    {
        await Links.DisposeAsync();
        await _app.DisposeAsync();
    }
}
