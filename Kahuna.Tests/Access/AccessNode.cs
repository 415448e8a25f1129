using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using System.Text;
using System.Text.Json;
using Grpc.Net.Client;
using Kahuna.Client;
using Kahuna.Server.Access;
using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.State.Meta;
using Kahuna.Tests.Client;
using Kahuna.Tests.Hosting;

namespace Kahuna.Tests.Access;

/// <summary>
/// One real node that requires authentication, takes everything to sign in with, and keeps an audit log. <c>root</c>
/// may do everything, <c>ann</c> everything below <c>ann/</c> and <c>shared/</c>, <c>bob</c> the same below
/// <c>bob/</c> and <c>shared/</c>. The password of a user is its name, twice.
/// </summary>
public sealed class AccessNode : IAsyncLifetime
{
    private const int CheapRounds = 1_000;
    private const string Issuer = "https://issuer.example";
    private const string Audience = "kahuna";

    private readonly TemporaryDirectory _directory = new();
    private readonly Dictionary<string, UserRecord> _users = [];
    private readonly RSA _jwtKey = RSA.Create(2048);
    private EmbeddedCluster? _cluster;

    internal KahunaNode Node => _cluster!.Nodes[0];

    private NodeAccess Access => Node.Access;

    private string AuditPath => Path.Combine(_directory.Path, "audit.log");

    public async Task InitializeAsync()
    {
        string keys = _directory.File("jwt.pem", _jwtKey.ExportSubjectPublicKeyInfoPem());
        using X509Certificate2 authority = Authority("CN=clients");
        string authorities = _directory.File("ca.pem", authority.ExportCertificatePem());
        _cluster = await EmbeddedCluster.StartAsync(1, configure: options => options with
        {
            Partitions = 3,
            Access = new AccessOptions
            {
                Mode = AuthMode.Required,
                ClientCaPath = authorities,
                JwtIssuer = Issuer,
                JwtAudience = Audience,
                JwtKeys = keys,
                AuditLogPath = AuditPath,
            },
        }).WaitAsync(Wait.Longest);
        await ChangeAsync(
            AccessRowFormat.Of(AccessCluster.Role("ann", "ann")),
            AccessRowFormat.Of(AccessCluster.Role("bob", "bob")),
            Put(new UserRecord(1, "root") { Roles = [RoleRecord.AdminName] }),
            Put(new UserRecord(2, "ann") { Roles = ["ann"], CertificateNames = ["CN=ann"] }),
            Put(new UserRecord(3, "bob") { Roles = ["bob"] }),
            AccessRowFormat.OfLastUserId(3));
        await Wait.UntilAsync(() => Access.State.IsFresh());
    }

    public async Task DisposeAsync()
    {
        if (_cluster is not null)
        {
            await _cluster.DisposeAsync();
        }

        _jwtKey.Dispose();
        _directory.Dispose();
    }

    /// <summary>Somebody with a client, of the SDK or of another make.</summary>
    internal AccessVisitor Visit(bool isSdk, KahunaCredentials credentials, string header) =>
        isSdk ? new SdkVisitor(Sdk(credentials)) : new ForeignVisitor(Channel(), header);

    /// <summary>A user, with its password.</summary>
    internal AccessVisitor Visit(bool isSdk, string user, string? password = null) => Visit(
        isSdk, KahunaCredentials.Password(user, password ?? user + user), Basic(user, password ?? user + user));

    internal KahunaClient Sdk(KahunaCredentials credentials, Action<KahunaClientOptions>? configure = null) =>
        PatientClient.Connect(_cluster!.Endpoints, options =>
        {
            options.Credentials = credentials;
            options.RequestTimeout = TimeSpan.FromMinutes(1);
            configure?.Invoke(options);
        });

    /// <summary>A channel of the official client; the caller disposes it.</summary>
    /// <param name="certificate">The client's certificate; null: none.</param>
    /// <param name="from">The address that it connects from; null: any.</param>
    internal GrpcChannel Channel(X509Certificate2? certificate = null, IPAddress? from = null)
    {
        SslClientAuthenticationOptions tls = new()
        {
            RemoteCertificateValidationCallback = static (_, _, _, _) => true,
        };
        if (certificate is not null)
        {
            tls.ClientCertificateContext = SslStreamCertificateContext.Create(certificate, null, offline: true);
        }

        SocketsHttpHandler handler = new() { SslOptions = tls, UseProxy = false };
        if (from is not null)
        {
            handler.ConnectCallback = async (context, ct) =>
            {
                Socket socket = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
                socket.Bind(new IPEndPoint(from, 0));
                await socket.ConnectAsync(context.DnsEndPoint, ct);
                return new NetworkStream(socket, ownsSocket: true);
            };
        }

        return GrpcChannel.ForAddress(
            Node.Options.Advertise, new GrpcChannelOptions { HttpHandler = handler, DisposeHttpClient = true });
    }

    internal static string Basic(string user, string password) =>
        "Basic " + Convert.ToBase64String(Encoding.UTF8.GetBytes($"{user}:{password}"));

    /// <summary>The row of a user as it is now changed, with its password.</summary>
    internal AccessRow With(string user, Func<UserRecord, UserRecord> change) => Put(change(_users[user]), user);

    /// <summary>Changes the records, which the node obeys when this returns.</summary>
    internal async Task ChangeAsync(params AccessRow[] rows)
    {
        AccessCommit commit;
        do
        {
            commit = await Access.Ledger!.ChangeAsync(Access.State.Book.Version, rows, default).WaitAsync(Wait.Longest);
        }
        while (commit == AccessCommit.Conflict);
        Assert.Equal(AccessCommit.Applied, commit);
    }

    /// <summary>A certificate of another authority that has the name of one that is trusted.</summary>
    internal (X509Certificate2 Whole, string Path) CertificateOfAnother()
    {
        using X509Certificate2 other = Authority("CN=clients");
        using ECDsa key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        CertificateRequest request = new("CN=ann", key, HashAlgorithmName.SHA256);
        request.CertificateExtensions.Add(
            new X509EnhancedKeyUsageExtension([new Oid("1.3.6.1.5.5.7.3.2")], critical: false));
        using X509Certificate2 made = request.Create(
            other, DateTimeOffset.UtcNow.AddDays(-1), DateTimeOffset.UtcNow.AddDays(1), [7]);
        using X509Certificate2 whole = made.CopyWithPrivateKey(key);
        string path = _directory.File(
            $"{Guid.NewGuid():N}.pem", whole.ExportCertificatePem() + "\n" + key.ExportPkcs8PrivateKeyPem());
        return (X509CertificateLoader.LoadPkcs12(whole.Export(X509ContentType.Pkcs12), null), path);
    }

    /// <summary>A JSON Web Token of the issuer, or one that nobody has signed.</summary>
    internal string Jwt(string user, bool isSigned)
    {
        long until = DateTimeOffset.UtcNow.AddHours(1).ToUnixTimeSeconds();
        string header = Part(new { alg = isSigned ? "RS256" : "none", typ = "JWT" });
        string claims = Part(new { iss = Issuer, aud = Audience, sub = user, exp = until });
        byte[] signature = isSigned
            ? _jwtKey.SignData(
                Encoding.ASCII.GetBytes($"{header}.{claims}"), HashAlgorithmName.SHA256, RSASignaturePadding.Pkcs1)
            : [];
        return $"{header}.{claims}.{Base64Url(signature)}";
    }

    /// <summary>Complete lines of the audit log.</summary>
    internal IReadOnlyList<JsonElement> AuditLines()
    {
        if (!File.Exists(AuditPath))
        {
            return [];
        }

        using FileStream file = new(AuditPath, FileMode.Open, FileAccess.Read, FileShare.ReadWrite | FileShare.Delete);
        using StreamReader reader = new(file);
        string text = reader.ReadToEnd();
        return
        [
            .. text[..(text.LastIndexOf('\n') + 1)].Split('\n', StringSplitOptions.RemoveEmptyEntries)
                .Select(static line =>
                {
                    using JsonDocument document = JsonDocument.Parse(line);
                    return document.RootElement.Clone();
                }),
        ];
    }

    /// <summary>What is audited of an action: the lines until one that comes behind it.</summary>
    internal async Task<IReadOnlyList<JsonElement>> AuditOfAsync(Func<Task> action)
    {
        int before = (await UntilMarkedAsync()).Count;
        await action();
        IReadOnlyList<JsonElement> after = await UntilMarkedAsync();
        return [.. after.Skip(before).SkipLast(1)];
    }

    private async Task<IReadOnlyList<JsonElement>> UntilMarkedAsync()
    {
        string mark = $"mark {Guid.NewGuid():N}";
        Access.Audit.Write(Caller.Node, mark, "", AuditResults.Done);
        IReadOnlyList<JsonElement> lines = [];
        await Wait.UntilAsync(async () =>
        {
            await Task.Delay(5);
            lines = AuditLines();
            return lines.Any(line => line.GetProperty("action").GetString() == mark);
        });
        return lines;
    }

    private AccessRow Put(UserRecord user, string? key = null)
    {
        string name = key ?? user.Name;
        byte[] salt = [.. Enumerable.Repeat((byte)user.Id, 16)];
        user = user with
        {
            Password = new PasswordHash(
                CheapRounds,
                salt,
                Rfc2898DeriveBytes.Pbkdf2(
                    Encoding.UTF8.GetBytes(name + name), salt, CheapRounds, HashAlgorithmName.SHA256, 32)),
        };
        _users[name] = user;
        return AccessRowFormat.Of(user);
    }

    private static string Part(object content) => Base64Url(JsonSerializer.SerializeToUtf8Bytes(content));

    private static string Base64Url(byte[] bytes) =>
        Convert.ToBase64String(bytes).TrimEnd('=').Replace('+', '-').Replace('/', '_');

    private static X509Certificate2 Authority(string name)
    {
        using ECDsa key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        CertificateRequest request = new(name, key, HashAlgorithmName.SHA256);
        request.CertificateExtensions.Add(new X509BasicConstraintsExtension(
            certificateAuthority: true, hasPathLengthConstraint: false, pathLengthConstraint: 0, critical: true));
        return request.CreateSelfSigned(DateTimeOffset.UtcNow.AddDays(-2), DateTimeOffset.UtcNow.AddDays(2));
    }
}

/// <summary>
/// Tests on one node with users, not beside other tests: a node that stands still refuses users for a while.
/// </summary>
[CollectionDefinition(Name, DisableParallelization = true)]
public sealed class AccessNodeCollection : ICollectionFixture<AccessNode>
{
    public const string Name = "Access node";
}
