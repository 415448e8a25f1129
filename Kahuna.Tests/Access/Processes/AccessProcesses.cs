using System.Net;
using System.Net.Http.Headers;
using System.Text;
using Google.Protobuf;
using Grpc.Core;
using Grpc.Net.Client;
using Kahuna.Client;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Tests.Cluster;
using Kahuna.Tests.Hosting;
using Kahuna.Wire.Protos;
using Xunit.Abstractions;

namespace Kahuna.Tests.Access.Processes;

/// <summary>
/// Three server processes that require authentication, and their administrator <c>root</c>. Owned by one test; any
/// thread.
/// </summary>
internal sealed class AccessProcesses : IAsyncDisposable
{
    public const string Root = "root";
    public const string RootPassword = "correct horse battery";

    private readonly TemporaryDirectory _directory = new();
    private readonly HttpClient _http = new(new SocketsHttpHandler
    {
        SslOptions = new() { RemoteCertificateValidationCallback = static (_, _, _, _) => true },
        UseProxy = false,
    })
    {
        Timeout = LastNet.Span,
    };

    public AccessProcesses(ITestOutputHelper output, params string[] options)
    {
        string bootstrap = SecretFile("bootstrap", $"{Root}\n{RootPassword}\n");
        Cluster = new ProcessCluster(
            output, 3, ["--auth", "required", "--auth-bootstrap-file", bootstrap, .. options]);
        Cluster.Authorization = Basic(Root, RootPassword);
    }

    public ProcessCluster Cluster { get; }

    public IReadOnlyList<NodeProcess> Nodes => Cluster.Nodes;

    /// <summary>A file that only its owner may read.</summary>
    public string SecretFile(string name, string content)
    {
        string path = _directory.File(name, content);
        if (!OperatingSystem.IsWindows())
        {
            File.SetUnixFileMode(path, UnixFileMode.UserRead | UnixFileMode.UserWrite);
        }

        return path;
    }

    /// <summary>A JSON request of a user to one node; a status of 0: there was no answer.</summary>
    public async Task<(HttpStatusCode Status, string Text)> AskAsync(
        NodeProcess node, string user, string password, string method, string path, string? body = null)
    {
        using HttpRequestMessage request = new(new HttpMethod(method), node.Url + path);
        request.Headers.Authorization = AuthenticationHeaderValue.Parse(Basic(user, password));
        if (body is not null)
        {
            request.Content = new StringContent(body, Encoding.UTF8, "application/json");
        }

        try
        {
            using HttpResponseMessage answer = await _http.SendAsync(request);
            return (answer.StatusCode, await answer.Content.ReadAsStringAsync());
        }
        catch (Exception lost) when (lost is HttpRequestException or OperationCanceledException)
        {
            return (0, lost.Message);
        }
    }

    /// <summary>A change by the administrator, at one node, tried until the node can.</summary>
    public async Task AdministerAsync<TReply>(
        NodeProcess node, string method, IMessage request, MessageParser<TReply> parser)
        where TReply : class, IMessage<TReply>
    {
        using GrpcChannel channel = Channel(node);
        await Eventually.TrueAsync(LastNet.Span, $"{method} at node {node.Id}", async () =>
        {
            try
            {
                await channel.UnaryAsync("/kahuna.v1.Admin/" + method, request, parser, Options(Root, RootPassword));
                return true;
            }
            catch (RpcException busy) when (busy.StatusCode is StatusCode.Unavailable or StatusCode.Aborted)
            {
                return false;
            }
        });
    }

    /// <summary>Gives a role everything in a bucket, or nothing.</summary>
    public Task PutRoleAsync(NodeProcess node, string role, string? bucket)
    {
        Role wanted = new() { Name = role };
        if (bucket is not null)
        {
            wanted.Grants.Add(new RoleGrant
            {
                Bucket = bucket,
                Permissions =
                {
                    PermissionKind.Read, PermissionKind.Write, PermissionKind.Lock, PermissionKind.Watch,
                    PermissionKind.Transaction, PermissionKind.Script, PermissionKind.Sequence,
                },
            });
        }

        return AdministerAsync(node, "PutRole", new PutRoleRequest { Role = wanted }, Role.Parser);
    }

    /// <summary>Creates a user with a role.</summary>
    public Task CreateUserAsync(string user, string password, string role) => AdministerAsync(
        Nodes[0],
        "CreateUser",
        new CreateUserRequest { User = new User { Name = user, Roles = { role } }, Password = password },
        User.Parser);

    public KahunaClient Connect(string user, string password) => KahunaClient.Connect(Cluster.Endpoints, options =>
    {
        options.Insecure = true;
        options.Credentials = KahunaCredentials.Password(user, password);
        options.RequestTimeout = TimeSpan.FromSeconds(30);
    });

    public static GrpcChannel Channel(NodeProcess node) => GrpcChannel.ForAddress(
        node.Url,
        new GrpcChannelOptions
        {
            DisposeHttpClient = true,
            HttpHandler = new SocketsHttpHandler
            {
                SslOptions = new() { RemoteCertificateValidationCallback = static (_, _, _, _) => true },
                UseProxy = false,
            },
        });

    public static CallOptions Options(string user, string password) => TestCalls.Within(
        LastNet.Span, new Metadata { { "authorization", Basic(user, password) } });

    public async ValueTask DisposeAsync()
    {
        await Cluster.DisposeAsync();
        _http.Dispose();
        _directory.Dispose();
    }

    private static string Basic(string user, string password) => AccessNode.Basic(user, password);
}
