using System.Net;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using Kahuna.Server.Hosting.Certificates;
using Kahuna.Server.Primitives;
using Kahuna.Server.Transport;
using Kahuna.Tests.Hosting;

namespace Kahuna.Tests.Transport;

/// <summary>
/// A node that connects proves with a certificate which node it is, besides the secret, over real connections. All
/// nodes of these tests are at 127.0.0.1.
/// </summary>
public sealed class MutualTlsTests
{
    private const string Host = "127.0.0.1";

    private readonly NodeAuthority _authority = new();

    [Theory]
    [InlineData("Secret", "Secret")]
    [InlineData("Secret", "Offer")]
    [InlineData("Offer", "Secret")]
    [InlineData("Offer", "Offer")]
    [InlineData("Offer", "Mutual")]
    [InlineData("Mutual", "Offer")]
    [InlineData("Mutual", "Mutual")]
    public async Task Nodes_that_are_a_step_apart_link(string dialler, string acceptor)
    {
        PeerLinksOptions first = TestNode.Options(1, _authority.For(Host)) with { TlsMode = Mode(acceptor) };
        await using TestNode one = await TestNode.StartAsync(first);
        PeerLinksOptions second = TestNode.Options(2, _authority.For(Host), one.Address) with
        {
            TlsMode = Mode(dialler),
        };
        await using TestNode two = await TestNode.StartAsync(second);
        two.Frames.WaitChanges(true);
        one.Frames.WaitChanges(true);
        Assert.True(two.Send(1, "there"u8));
        Assert.True(one.Send(2, "back"u8));

        Assert.Equal("there"u8, one.Frames.WaitFrames(1)[0]);
        Assert.Equal("back"u8, two.Frames.WaitFrames(1)[0]);
        Assert.Equal(
            dialler == "Secret" && acceptor == "Offer" ? 1 : 0,
            one.Log.Count("would be refused with --peer-tls mutual: it shows no certificate"));
    }

    [Fact]
    public async Task A_certificate_below_an_intermediate_authority_is_enough()
    {
        NodeTls tls = _authority.BelowAnother(Host);
        PeerLinksOptions first = TestNode.Options(1, tls) with { TlsMode = PeerTlsMode.Mutual };
        await using TestNode one = await TestNode.StartAsync(first);
        await using TestNode two = await TestNode.StartAsync(
            TestNode.Options(2, _authority.BelowAnother(Host), one.Address) with { TlsMode = PeerTlsMode.Mutual });

        two.Frames.WaitChanges(true);
        Assert.True(two.Links.IsNodeAt(IPAddress.Loopback));
        Assert.False(two.Links.IsNodeAt(IPAddress.Parse("127.0.0.2")));
    }

    [Fact]
    public async Task Without_a_certificate_the_secret_is_not_enough() => await RefusedAsync(
        _authority.For(Host), PeerTlsMode.Secret, "it says it is node 2, but it shows no certificate");

    [Fact]
    public async Task A_certificate_of_another_authority_is_refused() => await RefusedAsync(
        new NodeTls(new NodeAuthority().ContextFor(Host), [_authority.Root]),
        PeerTlsMode.Mutual,
        "it says it is node 2, but its certificate is not accepted (");

    [Theory]
    [InlineData("10.1.2.3")]
    [InlineData("localhost")]
    public async Task The_certificate_of_another_host_is_refused(string host) => await RefusedAsync(
        _authority.For(host),
        PeerTlsMode.Mutual,
        $"but its certificate (CN={host}) is not for 127.0.0.1, the address of that node in --peers");

    [Fact]
    public async Task A_certificate_for_servers_alone_is_refused() => await RefusedAsync(
        _authority.For(Host, NodeAuthority.ServerUse), PeerTlsMode.Mutual, "its certificate is not accepted (");

    [Fact]
    public async Task While_certificates_are_offered_a_wrong_one_is_logged_and_accepted()
    {
        PeerLinksOptions first = TestNode.Options(1, _authority.For(Host)) with { TlsMode = PeerTlsMode.Offer };
        await using TestNode one = await TestNode.StartAsync(first);
        await using TestNode two = await TestNode.StartAsync(
            TestNode.Options(2, _authority.For("10.1.2.3"), one.Address) with { TlsMode = PeerTlsMode.Offer });
        two.Frames.WaitChanges(true);

        await one.Log.WaitFor(
            "The link to node 2 is up, but would be refused with --peer-tls mutual: its certificate (CN=10.1.2.3)");
    }

    [Fact]
    public async Task A_node_that_demands_certificates_does_not_connect_to_one_that_does_not()
    {
        PeerLinksOptions first = TestNode.Options(1, _authority.For(Host));
        await using TestNode one = await TestNode.StartAsync(first);
        await using TestNode two = await TestNode.StartAsync(
            TestNode.Options(2, _authority.For(Host), one.Address) with { TlsMode = PeerTlsMode.Mutual });

        await two.Log.WaitFor("it does not ask for a certificate; give it --peer-tls mutual");
        Assert.Empty(one.Frames.Changes);
    }

    [Fact]
    public async Task A_renewed_certificate_is_shown_on_the_next_link()
    {
        PeerLinksOptions first = TestNode.Options(1, _authority.For(Host)) with { TlsMode = PeerTlsMode.Mutual };
        await using TestNode one = await TestNode.StartAsync(first);
        PeerLinksOptions second = TestNode.Options(2, _authority.For("10.1.2.3"), one.Address) with
        {
            TlsMode = PeerTlsMode.Mutual,
        };
        await using TestNode two = await TestNode.StartAsync(second);
        await one.Log.WaitFor("is not for 127.0.0.1");
        NodeTls renewed = _authority.For(Host);
        second.Tls.Replace(renewed.Certificate, renewed.TrustedRoots);

        two.Frames.WaitChanges(true);
        one.Frames.WaitChanges(true);
    }

    [Fact]
    public async Task A_proof_counts_only_with_the_certificate_that_it_was_made_with()
    {
        PeerCertificate own = Shown(_authority.For(Host));
        PeerCertificate another = Shown(_authority.For(Host));

        Assert.Equal(PeerRefusal.None, await HandshakeAsync(own, own));
        Assert.Equal(PeerRefusal.Secret, await HandshakeAsync(own, another));

        // Of the two, one has seen no certificate, as when somebody in the middle shows none.
        Assert.Equal(PeerRefusal.Secret, await HandshakeAsync(own, null, PeerTlsMode.Offer));
        Assert.Equal(PeerRefusal.Secret, await HandshakeAsync(null, own, PeerTlsMode.Offer));
    }

    [Fact]
    public void A_subject_ends_no_line_of_the_log()
    {
        using X509Certificate2 named = CertificateOf("CN=\"a\nb\"", "b.example");
        string objection = new PeerCertificate(named, null).Objection(new Uri("https://a.example:8082"))!;

        Assert.Contains("a?b", objection, StringComparison.Ordinal);
        Assert.DoesNotContain(objection, char.IsControl);
    }

    [Fact]
    public void A_common_name_is_no_host()
    {
        using X509Certificate2 named = CertificateOf("CN=a.example", "b.example");

        Assert.False(PeerCertificate.IsFor(named, "a.example"));
        Assert.True(PeerCertificate.IsFor(named, "b.example"));
        Assert.Equal("::1", PeerCertificate.HostOf(new Uri("https://[::1]:8082")));
    }

    private async Task RefusedAsync(NodeTls dialler, PeerTlsMode mode, string reason)
    {
        PeerLinksOptions first = TestNode.Options(1, _authority.For(Host)) with { TlsMode = PeerTlsMode.Mutual };
        await using TestNode one = await TestNode.StartAsync(first);
        await using TestNode two = await TestNode.StartAsync(
            TestNode.Options(2, dialler, one.Address) with { TlsMode = mode });

        await one.Log.WaitFor(reason, LastNet.Minute);
        await two.Log.WaitFor("it does not accept this node's certificate, or got none", LastNet.Minute);
        Assert.Empty(one.Frames.Changes);
        Assert.Empty(two.Frames.Changes);
    }

    /// <summary>The acceptor's refusal when the two ends see these certificates of the dialler.</summary>
    private async Task<PeerRefusal> HandshakeAsync(
        PeerCertificate? atDialler, PeerCertificate? atAcceptor, PeerTlsMode mode = PeerTlsMode.Mutual)
    {
        NodeTls tls = _authority.For(Host);
        (Stream a, Stream b) = await LoopbackPair.ConnectAsync();
        await using Stream server = a;
        await using Stream client = b;
        Task<Exception?> accepting = Task.Run<Exception?>(() => Record.Exception(() => new PeerHandshake(
            TestNode.Options(1, tls) with { TlsMode = mode }, server, new byte[32], atAcceptor).Accept()));
        Task<Exception?> dialling = Task.Run<Exception?>(() => Record.Exception(() => new PeerHandshake(
            TestNode.Options(2, tls) with { TlsMode = mode }, client, new byte[32], atDialler).Dial(new NodeId(1))));
        Exception? refusal = await accepting.WaitAsync(LastNet.Span);
        await dialling.WaitAsync(LastNet.Span);
        return refusal is null ? PeerRefusal.None : Assert.IsType<PeerHandshakeException>(refusal).Reason;
    }

    private static PeerTlsMode Mode(string name) => Enum.Parse<PeerTlsMode>(name);

    private static PeerCertificate Shown(NodeTls tls) => new(tls.Certificate.TargetCertificate, null);

    private static X509Certificate2 CertificateOf(string subject, string host)
    {
        using ECDsa key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        CertificateRequest request = new(subject, key, HashAlgorithmName.SHA256);
        SubjectAlternativeNameBuilder names = new();
        names.AddDnsName(host);
        request.CertificateExtensions.Add(names.Build());
        return request.CreateSelfSigned(DateTimeOffset.UtcNow.AddDays(-1), DateTimeOffset.UtcNow.AddDays(1));
    }
}
