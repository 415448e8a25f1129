using System.Net;
using System.Net.Http.Json;
using System.Text;
using Kahuna.Server.Access;
using Kahuna.Server.Api.Access;
using Kahuna.Server.Cluster;
using Kahuna.Server.Hosting.Administration;
using Kahuna.Server.Primitives;
using Kahuna.Tests.Api.Access;
using Kahuna.Tests.Api.Grpc;
using Microsoft.Extensions.Logging.Abstractions;

namespace Kahuna.Tests.Hosting.Administration;

/// <summary>The first administrator, from a file and over the network: once, and by those who may.</summary>
public sealed class FirstAdministratorTests : IDisposable
{
    private readonly TemporaryDirectory _directory = new();
    private readonly AuditRecorder _audit = new();

    public void Dispose() => _directory.Dispose();

    [Fact]
    public async Task It_may_do_everything_and_is_made_once()
    {
        KnownUsers users = new();
        FirstAdministrator first = new(users, _audit);

        Assert.Equal(FirstAdministrator.Result.Made, await MakeAsync(first, "root"));
        Assert.Equal(FirstAdministrator.Result.HasUsers, await MakeAsync(first, "other"));
        UserRecord user = Assert.Single(users.Book.Users);
        Assert.True(users.Book.RightsOf(user).IsAdmin);
        Assert.True(Passwords.Verify(user.Password!, KnownUsers.Password));
        Assert.Equal(
            ["done", "refused: there are users"], _audit.Lines.Select(static line => line.Result));
        Assert.DoesNotContain(
            _audit.Lines, static line => line.ToString().Contains(KnownUsers.Password, StringComparison.Ordinal));
    }

    [Fact]
    public async Task Of_two_that_begin_together_one_makes_it()
    {
        KnownUsers users = new() { Conflicts = true };
        FirstAdministrator first = new(users, _audit);

        Assert.Equal(FirstAdministrator.Result.Conflict, await MakeAsync(first, "root"));
        Assert.Empty(users.Book.Users);
    }

    [Fact]
    public async Task A_bootstrap_goes_on_until_there_is_a_user()
    {
        KnownUsers users = new() { Conflicts = true };
        BootstrapFile file = new("root", KnownUsers.Password);
        await new Bootstrap(file, new FirstAdministrator(users, _audit), NullLogger.Instance)
            .RunAsync(CancellationToken.None);
        Assert.Equal("root", Assert.Single(users.Book.Users).Name);

        LineRecorder recorder = new();
        await new Bootstrap(file with { User = "again" }, new FirstAdministrator(users, _audit), recorder)
            .RunAsync(CancellationToken.None);
        Assert.Single(users.Book.Users);
        Assert.Contains("ignored", Assert.Single(recorder.Lines), StringComparison.Ordinal);
    }

    [Theory]
    [InlineData("root\ncorrect horse\n")]
    [InlineData("root\r\ncorrect horse\r\n")]
    [InlineData("root\ncorrect horse")]
    [InlineData("{ \"user\": \"root\", \"password\": \"correct horse\" }")]
    public void A_file_names_user_and_password(string text) =>
        Assert.Equal(new BootstrapFile("root", KnownUsers.Password), BootstrapFile.Read(Secret(text)));

    [Theory]
    [InlineData("")]
    [InlineData("root")]
    [InlineData("root\nshort\n")]
    [InlineData("root\ncorrect horse\nmore\n")]
    [InlineData("\ncorrect horse\n")]
    [InlineData("a:b\ncorrect horse\n")]
    [InlineData("{ \"user\": \"root\" }")]
    [InlineData("{ \"user\": 1, \"password\": \"correct horse\" }")]
    [InlineData("{ \"user\": \"root\", \"password\": \"correct horse\"")]
    public void Any_other_file_is_refused_and_not_quoted(string text)
    {
        InvalidDataException error = Assert.Throws<InvalidDataException>(() => BootstrapFile.Read(Secret(text)));

        Assert.DoesNotContain("correct", error.ToString(), StringComparison.Ordinal);
    }

    [Fact]
    public void A_file_that_others_can_read_is_refused()
    {
        if (OperatingSystem.IsWindows())
        {
            return;
        }

        string path = Secret("root\ncorrect horse\n");
        File.SetUnixFileMode(path, UnixFileMode.UserRead | UnixFileMode.GroupRead);

        Assert.Contains(
            "chmod 600", Assert.Throws<InvalidDataException>(() => BootstrapFile.Read(path)).Message,
            StringComparison.Ordinal);
    }

    [Fact]
    public async Task Over_the_network_it_needs_the_secret_of_the_cluster()
    {
        KnownUsers users = new();
        byte[] secret = Encoding.ASCII.GetBytes(new string('s', 32));
        NodeCredential credential = new(new ClusterSecrets(secret));
        using PasswordSignIn passwords = new(users.State, new PasswordThrottle(TimeProvider.System));
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(
            access: new AccessMiddleware(new Authenticator(users.State, credential, passwords), _audit),
            map: app => InitAdminEndpoint.Map(app, new FirstAdministrator(users, _audit)));

        Assert.Equal(HttpStatusCode.Unauthorized, await PostAsync(host, null));
        Assert.Equal(HttpStatusCode.Unauthorized, await PostAsync(host, "00"));
        Assert.Equal(
            HttpStatusCode.Unauthorized,
            await PostAsync(host, new NodeCredential(new ClusterSecrets([.. secret, 1])).Value));
        Assert.Equal(HttpStatusCode.BadRequest, await PostAsync(host, credential.Value, password: "short"));
        Assert.Empty(users.Book.Users);
        Assert.Equal(HttpStatusCode.OK, await PostAsync(host, credential.Value));
        Assert.Equal(HttpStatusCode.Conflict, await PostAsync(host, credential.Value, user: "second"));
        Assert.Equal("root", Assert.Single(users.Book.Users).Name);
    }

    private static Task<FirstAdministrator.Result> MakeAsync(FirstAdministrator first, string user) =>
        first.MakeAsync(Caller.Node, user, KnownUsers.Password, CancellationToken.None);

    private static async Task<HttpStatusCode> PostAsync(
        GrpcTestHost host, string? proof, string user = "root", string password = KnownUsers.Password)
    {
        using HttpMessageInvoker invoker = RawHttp.Invoker();
        using HttpRequestMessage request = new(HttpMethod.Post, new Uri(host.Address, "/init-admin"))
        {
            Content = JsonContent.Create(new { user, password }),
        };
        await request.Content.LoadIntoBufferAsync();
        if (proof is not null)
        {
            request.Headers.Add(NodeCredential.Header, proof);
        }

        using HttpResponseMessage response = await invoker.SendAsync(request, CancellationToken.None);
        return response.StatusCode;
    }

    private string Secret(string text)
    {
        string path = _directory.File("bootstrap", text);
        if (!OperatingSystem.IsWindows())
        {
            File.SetUnixFileMode(path, UnixFileMode.UserRead | UnixFileMode.UserWrite);
        }

        return path;
    }
}
