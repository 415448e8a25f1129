using System.Net;
using System.Net.Http.Headers;
using System.Text;
using Grpc.Core;
using Kahuna.Server.Access;
using Kahuna.Server.Api.Access;
using Kahuna.Server.Api.Protos;
using Kahuna.Server.Cluster;
using Kahuna.Server.Primitives;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Tests.Hosting;
using Microsoft.AspNetCore.Builder;

namespace Kahuna.Tests.Api.Access;

/// <summary>Ways in over real connections, with callers of all kinds and none.</summary>
public sealed class AccessMiddlewareTests : IAsyncLifetime
{
    private static readonly byte[] s_secret = Encoding.ASCII.GetBytes(new string('s', 32));

    private readonly SteppedTime _time = new();
    private readonly AuditRecorder _audit = new();
    private readonly NodeCredential _credential = new(new ClusterSecrets(s_secret));
    private readonly KnownUsers _users;
    private readonly PasswordSignIn _passwords;
    private GrpcTestHost? _host;

    public AccessMiddlewareTests()
    {
        _users = new KnownUsers(_time);
        _passwords = new PasswordSignIn(_users.State, new PasswordThrottle(_time));
        _users.Add(1, "ann");
        _users.Add(2, "root", "admin");
    }

    private GrpcTestHost Host => _host!;

    public async Task InitializeAsync() => _host = await StartAsync(_users);

    public async Task DisposeAsync()
    {
        await Host.DisposeAsync();
        _passwords.Dispose();
    }

    [Fact]
    public async Task Who_says_nothing_is_nobody()
    {
        RpcException error = await ThrowsAsync();

        Assert.Equal(StatusCode.Unauthenticated, error.StatusCode);
        Assert.Contains("authorization", error.Status.Detail, StringComparison.Ordinal);
        Assert.Equal("did-not-happen", error.Trailers.GetValue("kahuna-outcome"));
    }

    [Fact]
    public async Task A_user_with_its_password_is_let_in_again_and_again()
    {
        for (int i = 0; i < 5; i++)
        {
            await CallAsync(Basic("ann", KnownUsers.Password));
        }

        Assert.Equal(1, _passwords.Hashed);
    }

    [Fact]
    public async Task A_wrong_password_is_not_nor_after_a_right_one_on_the_same_connection()
    {
        await CallAsync(Basic("ann", KnownUsers.Password));
        Assert.Equal(StatusCode.Unauthenticated, (await ThrowsAsync(Basic("ann", "wrong password"))).StatusCode);
        Assert.Equal(StatusCode.Unauthenticated, (await ThrowsAsync()).StatusCode);
        Assert.Contains(
            _audit.Lines,
            static line => line is { User: "ann", Action: "sign in" } && AuditResults.IsRefused(line.Result));
        Assert.DoesNotContain(
            _audit.Lines, static line => line.ToString().Contains("wrong password", StringComparison.Ordinal));
    }

    [Fact]
    public async Task Too_many_wrong_passwords_are_told_when_to_come_back()
    {
        RpcException error = await ThrowsAsync(Basic("ann", "wrong 0"));
        for (int i = 1; error.StatusCode == StatusCode.Unauthenticated; i++)
        {
            Assert.InRange(i, 1, 100);
            error = await ThrowsAsync(Basic("ann", $"wrong {i}"));
        }

        Assert.Equal(StatusCode.ResourceExhausted, error.StatusCode);
        Assert.Equal("1000", error.Trailers.GetValue("grpc-retry-pushback-ms"));
    }

    [Fact]
    public async Task A_token_is_let_in_until_it_expires()
    {
        (_, string text) = _users.AddToken(1, _users.State.Now.ToUnixTimeMilliseconds() + 60_000);
        await CallAsync("Bearer " + text);
        _time.Now += TimeSpan.FromSeconds(59);
        await CallAsync("Bearer " + text);
        _time.Now += TimeSpan.FromSeconds(1);

        Assert.Equal(StatusCode.Unauthenticated, (await ThrowsAsync("Bearer " + text)).StatusCode);
        _users.Add(3, "bob");
        Assert.Equal(StatusCode.Unauthenticated, (await ThrowsAsync("Bearer " + text)).StatusCode);
    }

    [Fact]
    public async Task A_token_is_let_in_until_it_is_revoked()
    {
        (TokenRecord token, string text) = _users.AddToken(1);
        await CallAsync("Bearer " + text);
        _users.Remove(AccessRowFormat.Of(token));

        Assert.Equal(StatusCode.Unauthenticated, (await ThrowsAsync("Bearer " + text)).StatusCode);
    }

    [Fact]
    public async Task Neither_a_token_of_another_cluster_nor_another_secret_of_a_known_one_is_let_in()
    {
        (_, string foreign) = new KnownUsers().AddToken(1);
        (TokenRecord token, _) = _users.AddToken(1);
        string guessed = TokenText.Of(token.Id, TokenText.NewSecret());

        Assert.Equal(StatusCode.Unauthenticated, (await ThrowsAsync("Bearer " + foreign)).StatusCode);
        Assert.Equal(StatusCode.Unauthenticated, (await ThrowsAsync("Bearer " + guessed)).StatusCode);
        Assert.Equal(StatusCode.Unauthenticated, (await ThrowsAsync("Bearer kahuna_")).StatusCode);
        Assert.Equal(StatusCode.Unauthenticated, (await ThrowsAsync("Bearer a.b.c")).StatusCode);
    }

    [Fact]
    public async Task A_disabled_user_is_not_let_in()
    {
        (_, string text) = _users.AddToken(1);
        await CallAsync(Basic("ann", KnownUsers.Password));
        _users.Put(_users.Book.FindUser("ann")! with { IsDisabled = true });

        Assert.Equal(StatusCode.Unauthenticated, (await ThrowsAsync(Basic("ann", KnownUsers.Password))).StatusCode);
        Assert.Equal(StatusCode.Unauthenticated, (await ThrowsAsync("Bearer " + text)).StatusCode);
    }

    [Fact]
    public async Task A_deleted_user_is_nobody_though_another_has_its_name()
    {
        UserRecord ann = _users.Book.FindUser("ann")!;
        await CallAsync(Basic("ann", KnownUsers.Password));
        _users.Remove(AccessRowFormat.Of(ann));
        Assert.Equal(StatusCode.Unauthenticated, (await ThrowsAsync(Basic("ann", KnownUsers.Password))).StatusCode);

        _users.Put(new UserRecord(9, "ann") { Password = KnownUsers.HashOf("other"), PasswordVersion = 1 });
        Assert.Equal(StatusCode.Unauthenticated, (await ThrowsAsync(Basic("ann", KnownUsers.Password))).StatusCode);
    }

    [Fact]
    public async Task A_renamed_user_goes_by_its_new_name_also_on_its_connection()
    {
        await CallAsync(Basic("ann", KnownUsers.Password));
        _users.Put(_users.Book.FindUser("ann")! with { Name = "anna" });

        Assert.Equal(StatusCode.Unauthenticated, (await ThrowsAsync(Basic("ann", KnownUsers.Password))).StatusCode);
        await CallAsync(Basic("anna", KnownUsers.Password));
    }

    [Fact]
    public async Task Two_ways_at_once_are_refused()
    {
        (_, string text) = _users.AddToken(1);
        RpcException two = await ThrowsAsync(
            ("authorization", Basic("ann", KnownUsers.Password)), ("authorization", "Bearer " + text));
        RpcException node = await ThrowsAsync(
            ("authorization", "Bearer " + text), (NodeCredential.Header, _credential.Value!));

        Assert.Equal(StatusCode.Unauthenticated, two.StatusCode);
        Assert.Equal(StatusCode.Unauthenticated, node.StatusCode);
    }

    [Fact]
    public async Task A_node_is_recognized_by_its_proof_and_by_no_other()
    {
        await CallAsync((NodeCredential.Header, _credential.Value!));
        RpcException other = await ThrowsAsync(
            (NodeCredential.Header, new NodeCredential(new ClusterSecrets([.. s_secret, 1])).Value!));

        Assert.Equal(StatusCode.Unauthenticated, other.StatusCode);
    }

    [Fact]
    public async Task A_huge_header_is_refused_and_the_node_goes_on()
    {
        await Assert.ThrowsAnyAsync<Exception>(() => CallAsync("Bearer " + new string('a', 1 << 20)));
        await CallAsync(Basic("ann", KnownUsers.Password));
    }

    [Fact]
    public async Task A_method_without_a_policy_is_open_to_nobody()
    {
        string root = Basic("root", KnownUsers.Password);
        Assert.Equal("7", await StatusAsync("/kahuna.test.Streams/Echo", root));
        Assert.Equal("7", await StatusAsync("/kahuna.test.Streams/Sink", root));
    }

    [Fact]
    public async Task A_method_that_does_not_exist_is_named_to_those_who_signed_in()
    {
        Assert.Equal("16", await StatusAsync("/kahuna.v1.KeyValues/Nothing", null));
        Assert.Equal("16", await StatusAsync("/nothing.Nothing/Nothing", null));
        Assert.Equal("12", await StatusAsync("/kahuna.v1.KeyValues/Nothing", Basic("ann", KnownUsers.Password)));
        Assert.Equal("12", await StatusAsync("/nothing.Nothing/Nothing", Basic("ann", KnownUsers.Password)));
    }

    [Fact]
    public async Task Paths_are_open_by_their_policy()
    {
        string ann = Basic("ann", KnownUsers.Password);
        string root = Basic("root", KnownUsers.Password);
        Assert.Equal(HttpStatusCode.OK, (await GetAsync("/healthz", null)).StatusCode);
        Assert.Equal(HttpStatusCode.Unauthorized, (await GetAsync("/status", null)).StatusCode);
        Assert.Equal(HttpStatusCode.Forbidden, (await GetAsync("/status", ann)).StatusCode);
        Assert.Equal(HttpStatusCode.OK, (await GetAsync("/status", root)).StatusCode);
        Assert.Equal(HttpStatusCode.Unauthorized, (await GetAsync("/unlisted", null)).StatusCode);
        Assert.Equal(HttpStatusCode.Forbidden, (await GetAsync("/unlisted", root)).StatusCode);
        Assert.Equal(HttpStatusCode.Forbidden, (await GetAsync("/init-admin", root)).StatusCode);
    }

    [Theory]
    [InlineData("/STATUS")]
    [InlineData("/status/")]
    [InlineData("//status")]
    [InlineData("/./status")]
    [InlineData("/healthz/../status")]
    [InlineData("/%73tatus")]
    [InlineData("/healthz%2f..%2fstatus")]
    [InlineData("/status?x=/healthz")]
    public async Task Another_spelling_of_a_path_has_no_other_policy(string path)
    {
        HttpResponseMessage response = await GetAsync(path, null);

        Assert.Equal(HttpStatusCode.Unauthorized, response.StatusCode);
        Assert.DoesNotContain("secret state", await response.Content.ReadAsStringAsync(), StringComparison.Ordinal);
    }

    [Fact]
    public async Task Plain_http_is_told_how_to_sign_in()
    {
        HttpResponseMessage response = await GetAsync("/status", null);

        Assert.Equal(["Basic", "Bearer"], response.Headers.WwwAuthenticate.Select(static way => way.Scheme));
        Assert.Contains("authorization", await response.Content.ReadAsStringAsync(), StringComparison.Ordinal);
        Assert.Equal("did-not-happen", response.Headers.GetValues("kahuna-outcome").Single());
    }

    [Fact]
    public async Task A_call_of_grpc_web_is_refused_in_its_own_form()
    {
        using HttpMessageInvoker invoker = RawHttp.Invoker();
        using HttpRequestMessage request = RawHttp.Request(
            Host.Address, "/kahuna.v1.KeyValues/GetKeyValue", [0, 0, 0, 0, 0], "application/grpc-web");
        using HttpResponseMessage response = await invoker.SendAsync(request, CancellationToken.None);

        Assert.Equal("16", await RawHttp.StatusAsync(response));
        Assert.Equal("application/grpc-web", response.Content.Headers.ContentType?.MediaType);
    }

    [Fact]
    public async Task Stale_records_let_nobody_in_but_nodes()
    {
        _users.State.IsFresh = static () => false;

        Assert.Equal(StatusCode.Unavailable, (await ThrowsAsync(Basic("ann", KnownUsers.Password))).StatusCode);
        await CallAsync((NodeCredential.Header, _credential.Value!));
    }

    [Fact]
    public async Task Without_authentication_nothing_is_looked_at_but_the_way_to_the_first_administrator()
    {
        await using GrpcTestHost open = await StartAsync(new KnownUsers(isRequired: false));
        await CallAsync(open, []);
        await CallAsync(open, [("authorization", "nonsense")]);

        Assert.Equal(HttpStatusCode.Forbidden, (await GetAsync("/init-admin", null, open)).StatusCode);
        Assert.Equal(HttpStatusCode.OK, (await GetAsync("/status", null, open)).StatusCode);
    }

    internal static string Basic(string user, string password) =>
        "Basic " + Convert.ToBase64String(Encoding.UTF8.GetBytes($"{user}:{password}"));

    private Task<GrpcTestHost> StartAsync(KnownUsers users) => GrpcTestHost.StartAsync(
        middleware: ConnectionCaller.Middleware,
        access: new AccessMiddleware(new Authenticator(users.State, _credential, _passwords), _audit),
        map: static app =>
        {
            app.MapGet("/healthz", static () => "ok");
            app.MapGet("/status", static () => "secret state");
            app.MapGet("/unlisted", static () => "secret state");
            app.MapGet("/init-admin", static () => "secret state");
        });

    private Task CallAsync(string? authorization) =>
        CallAsync(Host, authorization is null ? [] : [("authorization", authorization)]);

    private Task CallAsync(params (string Name, string Value)[] headers) => CallAsync(Host, headers);

    private static async Task CallAsync(GrpcTestHost host, (string Name, string Value)[] headers)
    {
        Metadata metadata = [.. headers.Select(static header => new Metadata.Entry(header.Name, header.Value))];
        await host.Channel.UnaryAsync(
            "/kahuna.v1.KeyValues/GetKeyValue",
            new GetKeyValueRequest { Key = "k", Durability = Server.Api.Protos.Durability.Persistent },
            GetKeyValueResponse.Parser,
            new CallOptions(metadata));
    }

    private Task<RpcException> ThrowsAsync(string? authorization) =>
        Assert.ThrowsAsync<RpcException>(() => CallAsync(authorization));

    private Task<RpcException> ThrowsAsync(params (string Name, string Value)[] headers) =>
        Assert.ThrowsAsync<RpcException>(() => CallAsync(headers));

    private async Task<string?> StatusAsync(string path, string? authorization)
    {
        using HttpMessageInvoker invoker = RawHttp.Invoker();
        using HttpRequestMessage request = RawHttp.Request(Host.Address, path, [0, 0, 0, 0, 0]);
        if (authorization is not null)
        {
            request.Headers.Authorization = AuthenticationHeaderValue.Parse(authorization);
        }

        using HttpResponseMessage response = await invoker.SendAsync(request, CancellationToken.None);
        return await RawHttp.StatusAsync(response);
    }

    private async Task<HttpResponseMessage> GetAsync(string path, string? authorization, GrpcTestHost? host = null)
    {
        using HttpMessageInvoker invoker = RawHttp.Invoker();
        Uri address = new((host ?? Host).Address.GetLeftPart(UriPartial.Authority) + path,
            new UriCreationOptions { DangerousDisablePathAndQueryCanonicalization = true });
        using HttpRequestMessage request = new(HttpMethod.Get, address);
        if (authorization is not null)
        {
            request.Headers.Authorization = AuthenticationHeaderValue.Parse(authorization);
        }

        HttpResponseMessage response = await invoker.SendAsync(request, CancellationToken.None);
        await response.Content.LoadIntoBufferAsync();
        return response;
    }
}
