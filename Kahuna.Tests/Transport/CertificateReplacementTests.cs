using System.Security.Cryptography.X509Certificates;
using Kahuna.Server.Hosting.Certificates;
using Kahuna.Server.Primitives;
using Kahuna.Server.Transport;
using Kahuna.Tests.Hosting;

namespace Kahuna.Tests.Transport;

/// <summary>
/// A certificate that is replaced while connections exist: new ones see the new one, those that are established go on.
/// </summary>
public sealed class CertificateReplacementTests : IDisposable
{
    private readonly TemporaryDirectory _first = new();
    private readonly TemporaryDirectory _second = new();
    private readonly NodeTls _before;
    private readonly NodeTls _after;

    public CertificateReplacementTests()
    {
        _before = new DevelopmentCertificates(_first.Path, TimeProvider.System).Ensure([]);
        _after = new DevelopmentCertificates(_second.Path, TimeProvider.System).Ensure([]);
    }

    public void Dispose()
    {
        _first.Dispose();
        _second.Dispose();
    }

    [Fact]
    public async Task Clients_see_the_new_certificate_on_new_connections()
    {
        PeerLinksOptions options = TestNode.Options(1, _before);
        await using TestNode node = await TestNode.StartAsync(options);
        List<string> shown = [];
        using HttpClient early = Client(node, shown);
        await early.GetStringAsync(node.Address);
        options.Tls.Replace(_after.Certificate, _after.TrustedRoots);
        using HttpClient late = Client(node, shown);
        await late.GetStringAsync(node.Address);
        Assert.Equal([Thumbprint(_before), Thumbprint(_after)], shown);

        // On the connection that it has: no third handshake.
        await early.GetStringAsync(node.Address);
        Assert.Equal(2, shown.Count);
    }

    [Fact]
    public async Task Nodes_go_on_and_link_anew_under_the_new_authority()
    {
        PeerLinksOptions options = TestNode.Options(1, _before);
        await using TestNode one = await TestNode.StartAsync(options);
        await using TestNode two = await TestNode.StartAsync(TestNode.Options(2, _before, one.Address));
        two.Frames.WaitChanges(true);
        one.Frames.WaitChanges(true);
        options.Tls.Replace(_after.Certificate, _after.TrustedRoots);
        Assert.True(one.Send(2, "still"u8));
        Assert.Equal("still"u8, two.Frames.WaitFrames(1)[0]);

        // Node 3 trusts the former authority, so it refuses node 1 until it gets the new one.
        PeerLinksOptions third = TestNode.Options(3, _before, one.Address);
        await using TestNode three = await TestNode.StartAsync(third);
        await three.Log.WaitFor("Cannot connect to node 1 at ");
        third.Tls.Replace(_after.Certificate, _after.TrustedRoots);
        three.Frames.WaitChanges(true);
        one.Frames.WaitChanges(true, true);
        Assert.True(three.Send(1, "new"u8));
        Assert.Equal("new"u8, one.Frames.WaitFrames(1)[0]);
        Assert.True(two.Links.IsUp(new NodeId(1)));
    }

    private static string Thumbprint(NodeTls tls) => tls.Certificate.TargetCertificate.Thumbprint;

    private static HttpClient Client(TestNode node, List<string> shown) => new(new SocketsHttpHandler
    {
        SslOptions =
        {
            RemoteCertificateValidationCallback = (_, certificate, _, _) =>
            {
                shown.Add(((X509Certificate2)certificate!).Thumbprint);
                return true;
            },
        },
    })
    { BaseAddress = node.Address };
}
