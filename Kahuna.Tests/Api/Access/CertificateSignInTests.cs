using System.Net.Security;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using Grpc.Core;
using Grpc.Net.Client;
using Kahuna.Server.Api.Access;
using Kahuna.Server.Api.Protos;
using Kahuna.Server.Cluster;
using Kahuna.Server.Primitives;
using Kahuna.Tests.Api.Grpc;

namespace Kahuna.Tests.Api.Access;

/// <summary>Client certificates over real connections: of the authority, of another one, and of nobody.</summary>
public sealed class CertificateSignInTests : IAsyncLifetime
{
    private const string ClientUse = "1.3.6.1.5.5.7.3.2";
    private const string ServerUse = "1.3.6.1.5.5.7.3.1";

    private readonly KnownUsers _users = new();
    private readonly AuditRecorder _audit = new();
    private readonly PasswordSignIn _passwords;
    private readonly X509Certificate2 _authority = Authority("CN=clients");
    private GrpcTestHost? _host;

    public CertificateSignInTests()
    {
        _passwords = new PasswordSignIn(_users.State, new PasswordThrottle(TimeProvider.System));
        _users.Put(_users.Add(1, "ann") with { CertificateNames = ["ann.example"] });
        _users.Put(_users.Add(2, "bob") with { CertificateNames = ["CN=bob, O=example"] });
        _users.Put(_users.Add(3, "cid") with { CertificateNames = ["spiffe://example/cid"] });
    }

    public async Task InitializeAsync() => _host = await GrpcTestHost.StartAsync(
        middleware: ConnectionCaller.Middleware,
        access: new AccessMiddleware(
            new Authenticator(_users.State, new NodeCredential(new ClusterSecrets()), _passwords)
            {
                Certificates = new CertificateSignIn(_users.State),
            },
            _audit),
        clientAuthorities: () => [_authority]);

    public async Task DisposeAsync()
    {
        await _host!.DisposeAsync();
        _passwords.Dispose();
        _authority.Dispose();
    }

    [Theory]
    [InlineData("CN=whatever", "ann.example", null)]
    [InlineData("CN=ann.example", null, null)]
    [InlineData("CN=bob, O=example", null, null)]
    [InlineData("O=example", null, "spiffe://example/cid")]
    public async Task A_certificate_of_the_authority_is_its_user(string subject, string? host, string? uri)
    {
        await CallAsync(Issue(subject, host, uri));
        await CallAsync(Issue(subject, host, uri));
    }

    [Fact]
    public async Task A_certificate_that_names_no_user_is_nobody()
    {
        RpcException error = await Assert.ThrowsAsync<RpcException>(
            () => CallAsync(Issue("CN=nobody", "nobody.example", null)));

        Assert.Equal(StatusCode.Unauthenticated, error.StatusCode);
        Assert.Contains(_audit.Lines, static line => line.User == "CN=nobody");
    }

    [Fact]
    public async Task Names_of_two_users_are_nobody() =>
        Assert.Equal(
            StatusCode.Unauthenticated,
            (await Assert.ThrowsAsync<RpcException>(
                () => CallAsync(Issue("CN=bob, O=example", "ann.example", null)))).StatusCode);

    [Fact]
    public async Task A_certificate_of_another_authority_is_refused()
    {
        using X509Certificate2 other = Authority("CN=clients");
        RpcException error = await Assert.ThrowsAsync<RpcException>(
            () => CallAsync(Issue("CN=x", "ann.example", null, issuer: other)));

        Assert.Equal(StatusCode.Unauthenticated, error.StatusCode);
        Assert.Contains("an authority of --auth-client-ca", error.Status.Detail, StringComparison.Ordinal);
    }

    [Fact]
    public async Task So_is_one_of_itself_one_for_servers_and_one_that_has_expired()
    {
        using X509Certificate2 own = Authority("CN=ann.example");
        await Assert.ThrowsAsync<RpcException>(() => CallAsync(own));
        await Assert.ThrowsAsync<RpcException>(() => CallAsync(Issue("CN=x", "ann.example", null, ServerUse)));
        await Assert.ThrowsAsync<RpcException>(() => CallAsync(Issue("CN=x", "ann.example", null, days: -1)));
    }

    [Fact]
    public async Task Without_a_certificate_there_are_other_ways()
    {
        await CallAsync(null, AccessMiddlewareTests.Basic("ann", KnownUsers.Password));
        RpcException none = await Assert.ThrowsAsync<RpcException>(() => CallAsync(null));
        RpcException both = await Assert.ThrowsAsync<RpcException>(() => CallAsync(
            Issue("CN=x", "ann.example", null), AccessMiddlewareTests.Basic("ann", KnownUsers.Password)));

        Assert.Equal(StatusCode.Unauthenticated, none.StatusCode);
        Assert.Equal(StatusCode.Unauthenticated, both.StatusCode);
    }

    [Fact]
    public void A_common_name_counts_if_it_is_the_only_one()
    {
        using X509Certificate2 two = Issue("CN=ann, CN=bob", null, null);

        Assert.Equal(["CN=ann, CN=bob"], CertificateSignIn.NamesOf(two));
    }

    private async Task CallAsync(X509Certificate2? certificate, string? authorization = null)
    {
        SslClientAuthenticationOptions tls = TestCertificate.Trust;
        if (certificate is not null)
        {
            tls.ClientCertificateContext = SslStreamCertificateContext.Create(certificate, null, offline: true);
        }

        using GrpcChannel channel = TestChannels.To(_host!.Address, tls);
        Metadata headers = authorization is null ? [] : new Metadata { { "authorization", authorization } };
        await channel.UnaryAsync(
            "/kahuna.v1.KeyValues/GetKeyValue",
            new GetKeyValueRequest { Key = "k", Durability = Server.Api.Protos.Durability.Persistent },
            GetKeyValueResponse.Parser,
            new CallOptions(headers));
    }

    private static X509Certificate2 Authority(string name)
    {
        using ECDsa key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        CertificateRequest request = new(name, key, HashAlgorithmName.SHA256);
        request.CertificateExtensions.Add(new X509BasicConstraintsExtension(
            certificateAuthority: true, hasPathLengthConstraint: false, pathLengthConstraint: 0, critical: true));
        using X509Certificate2 made = request.CreateSelfSigned(
            DateTimeOffset.UtcNow.AddDays(-10), DateTimeOffset.UtcNow.AddDays(10));
        return Whole(made);
    }

    private X509Certificate2 Issue(
        string subject,
        string? host,
        string? uri,
        string use = ClientUse,
        int days = 1,
        X509Certificate2? issuer = null)
    {
        using ECDsa key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        CertificateRequest request = new(subject, key, HashAlgorithmName.SHA256);
        SubjectAlternativeNameBuilder names = new();
        if (host is not null)
        {
            names.AddDnsName(host);
        }

        if (uri is not null)
        {
            names.AddUri(new Uri(uri));
        }

        if (host is not null || uri is not null)
        {
            request.CertificateExtensions.Add(names.Build());
        }

        request.CertificateExtensions.Add(new X509EnhancedKeyUsageExtension([new Oid(use)], critical: false));
        using X509Certificate2 made = request.Create(
            issuer ?? _authority,
            DateTimeOffset.UtcNow.AddDays(-5),
            DateTimeOffset.UtcNow.AddDays(days),
            RandomNumberGenerator.GetBytes(8));
        using X509Certificate2 whole = made.CopyWithPrivateKey(key);
        return Whole(whole);
    }

    private static X509Certificate2 Whole(X509Certificate2 certificate) => X509CertificateLoader.LoadPkcs12(
        certificate.Export(X509ContentType.Pfx), null, X509KeyStorageFlags.Exportable);
}
