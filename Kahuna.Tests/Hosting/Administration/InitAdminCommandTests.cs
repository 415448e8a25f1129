using System.Security.Cryptography.X509Certificates;
using System.Text;
using Kahuna.Server.Api.Access;
using Kahuna.Server.Cluster;
using Kahuna.Server.Hosting.Administration;
using Kahuna.Server.Primitives;
using Kahuna.Tests.Api.Access;
using Kahuna.Tests.Api.Grpc;

namespace Kahuna.Tests.Hosting.Administration;

/// <summary>The verb of the server that makes the first administrator, against an endpoint over TLS.</summary>
public sealed class InitAdminCommandTests : IAsyncLifetime
{
    private const string Secret = "0123456789abcdef0123456789abcdef";

    private readonly TemporaryDirectory _directory = new();
    private readonly KnownUsers _users = new();
    private readonly PasswordSignIn _passwords;
    private GrpcTestHost? _host;

    public InitAdminCommandTests() =>
        _passwords = new PasswordSignIn(_users.State, new PasswordThrottle(TimeProvider.System));

    public async Task InitializeAsync() => _host = await GrpcTestHost.StartAsync(
        access: new AccessMiddleware(
            new Authenticator(
                _users.State, new NodeCredential(new ClusterSecrets(Encoding.ASCII.GetBytes(Secret))), _passwords),
            new AuditRecorder()),
        map: app => InitAdminEndpoint.Map(app, new FirstAdministrator(_users, new AuditRecorder())));

    public async Task DisposeAsync()
    {
        await _host!.DisposeAsync();
        _passwords.Dispose();
        _directory.Dispose();
    }

    [Fact]
    public async Task It_makes_one_and_no_second()
    {
        Assert.Equal(0, await RunAsync("root", Secret));
        Assert.Equal(1, await RunAsync("second", Secret));

        Assert.Equal("root", Assert.Single(_users.Book.Users).Name);
        Assert.NotNull((await _passwords.CheckAsync(
            "root", KnownUsers.Password, System.Net.IPAddress.Loopback)).User);
    }

    [Fact]
    public async Task Another_secret_makes_none()
    {
        Assert.Equal(1, await RunAsync("root", "another secret of this length"));
        Assert.Empty(_users.Book.Users);
    }

    [Fact]
    public async Task A_server_that_is_not_trusted_is_not_told_the_password()
    {
        using X509Certificate2 other = CertificateOfAnother();
        Assert.Equal(1, await RunAsync("root", Secret, other.ExportCertificatePem()));
        Assert.Empty(_users.Book.Users);
    }

    [Fact]
    public async Task What_is_missing_or_wrong_is_refused_before_anything_is_sent()
    {
        Assert.NotEqual(0, await InitAdminCommand.RunAsync([]));
        Assert.NotEqual(0, await RunAsync("", Secret));
        Assert.NotEqual(0, await RunAsync("a:b", Secret));
        Assert.NotEqual(0, await RunAsync("root", Secret, endpoint: "http://127.0.0.1:1"));
        Assert.Empty(_users.Book.Users);
    }

    private static X509Certificate2 CertificateOfAnother()
    {
        using System.Security.Cryptography.ECDsa key = System.Security.Cryptography.ECDsa.Create();
        CertificateRequest request = new(
            "CN=another", key, System.Security.Cryptography.HashAlgorithmName.SHA256);
        return request.CreateSelfSigned(DateTimeOffset.UtcNow.AddDays(-1), DateTimeOffset.UtcNow.AddDays(1));
    }

    private Task<int> RunAsync(string user, string secret, string? authority = null, string? endpoint = null)
    {
        string password = _directory.File("password", KnownUsers.Password + "\n");
        if (!OperatingSystem.IsWindows())
        {
            File.SetUnixFileMode(password, UnixFileMode.UserRead | UnixFileMode.UserWrite);
        }

        return InitAdminCommand.RunAsync(
        [
            "--endpoint", endpoint ?? _host!.Address.GetLeftPart(UriPartial.Authority),
            "--user", user,
            "--password-file", password,
            "--cluster-secret-file", _directory.File("secret", secret),
            "--trusted-ca", _directory.File("ca.pem", authority ?? TestCertificate.Instance.ExportCertificatePem()),
        ]);
    }
}
