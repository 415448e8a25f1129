using System.Net;
using System.Net.Security;
using System.Security.Cryptography.X509Certificates;
using System.Text;
using Grpc.Core;
using Grpc.Net.Client;
using Kahuna.Client;
using Kahuna.Client.Connection;
using Kahuna.Server.Api.Access;
using Kahuna.Server.Api.Protos;
using Kahuna.Server.Cluster;
using Kahuna.Server.Hosting.Administration;
using Kahuna.Server.Primitives;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Tests.Transport;

namespace Kahuna.Tests.Api.Access;

/// <summary>
/// Calls of nodes, with <c>--peer-tls mutual</c>: the proof of the secret counts only on a connection that shows the
/// certificate of a node. The nodes of these tests are at node.example, and users have certificates too.
/// </summary>
public sealed class NodeCallsTests : IDisposable
{
    private const string NodeHost = "node.example";

    private const string UserHost = "ann.example";

    private readonly KnownUsers _users = new();
    private readonly AuditRecorder _audit = new();
    private readonly PasswordSignIn _passwords;
    private readonly NodeAuthority _nodes = new();
    private readonly NodeAuthority _clients = new();
    private readonly NodeCredential _credential = new(
        new ClusterSecrets(Encoding.ASCII.GetBytes(new string('s', 32))), needsCertificate: true);

    public NodeCallsTests()
    {
        _passwords = new PasswordSignIn(_users.State, new PasswordThrottle(TimeProvider.System));
        _users.Put(_users.Add(1, "ann") with { CertificateNames = [UserHost] });
    }

    public void Dispose() => _passwords.Dispose();

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task The_proof_needs_the_certificate_of_a_node(bool usersHaveCertificates)
    {
        await using GrpcTestHost host = await StartAsync(usersHaveCertificates);

        Assert.Equal(StatusCode.OK, await CallAsync(host, _nodes.ContextFor(NodeHost), _credential.Value));
        Assert.Equal(
            StatusCode.OK, await CallAsync(host, _nodes.BelowAnother(NodeHost).Certificate, _credential.Value));
        Assert.Equal(StatusCode.Unauthenticated, await CallAsync(host, null, _credential.Value));
        Assert.Equal(StatusCode.Unauthenticated, await CallAsync(host, _nodes.ContextFor(NodeHost), "00"));
        Assert.Equal(StatusCode.Unauthenticated, await CallAsync(host, _nodes.ContextFor(NodeHost), null));
    }

    [Fact]
    public async Task No_other_certificate_does()
    {
        await using GrpcTestHost host = await StartAsync(usersHaveCertificates: false);
        SslStreamCertificateContext[] others =
        [
            _nodes.ContextFor("other.example"),
            _nodes.ContextFor(NodeHost, NodeAuthority.ServerUse),
            new NodeAuthority().ContextFor(NodeHost),
            _clients.ContextFor(NodeHost),
        ];
        foreach (SslStreamCertificateContext other in others)
        {
            Assert.Equal(StatusCode.Unauthenticated, await CallAsync(host, other, _credential.Value));
        }
    }

    [Fact]
    public async Task The_authority_decides_what_a_certificate_says()
    {
        await using GrpcTestHost host = await StartAsync(usersHaveCertificates: true);

        Assert.Equal(StatusCode.OK, await CallAsync(host, _clients.ContextFor(UserHost), null));
        foreach (string name in (string[])[UserHost, NodeHost])
        {
            Assert.Equal(
                StatusCode.Unauthenticated, await CallAsync(host, _clients.ContextFor(name), _credential.Value));
        }

        // Of the nodes' authority, but for no node, or of neither: there is no connection.
        Assert.NotEqual(StatusCode.OK, await CallAsync(host, _nodes.ContextFor(UserHost), null));
        Assert.NotEqual(StatusCode.OK, await CallAsync(host, new NodeAuthority().ContextFor(UserHost), null));
    }

    [Fact]
    public async Task The_first_administrator_needs_the_secret_alone()
    {
        KnownUsers none = new();
        await using GrpcTestHost host = await StartAsync(usersHaveCertificates: false, none);
        using HttpMessageInvoker invoker = RawHttp.Invoker();
        using HttpRequestMessage request = new(HttpMethod.Post, new Uri(host.Address, "/init-admin"))
        {
            Content = new StringContent(
                $$"""{"user": "root", "password": "{{KnownUsers.Password}}"}""", Encoding.UTF8, "application/json"),
        };
        request.Headers.Add(NodeCredential.Header, _credential.Value);
        using HttpResponseMessage response = await invoker.SendAsync(request, CancellationToken.None);

        Assert.Equal(HttpStatusCode.OK, response.StatusCode);
        Assert.Equal("root", Assert.Single(none.Book.Users).Name);
    }

    [Fact]
    public void Without_mutual_tls_the_secret_is_enough()
    {
        NodeCredential open = new(new ClusterSecrets(Encoding.ASCII.GetBytes(new string('s', 32))));

        Assert.True(open.IsNode(_credential.Value, null));
        Assert.True(open.IsNode(_credential.Value, new ShownCertificate(IsNode: false, IsUser: true)));
        Assert.False(open.IsNode("00", new ShownCertificate(IsNode: true, IsUser: false)));
        Assert.False(_credential.IsNode(_credential.Value, new ShownCertificate(IsNode: false, IsUser: true)));
        Assert.True(_credential.IsNode(_credential.Value, new ShownCertificate(IsNode: true, IsUser: false)));
    }

    [Fact]
    public void A_session_without_the_certificate_is_not_resumed()
    {
        ConnectionSettings settings = new KahunaClientOptions().ToSettings();
        using SocketsHttpHandler with = new GrpcFrameChannel(settings).HandlerFor(
            new Uri("https://a:1"), _nodes.ContextFor(NodeHost));
        using SocketsHttpHandler without = new GrpcFrameChannel(settings).HandlerFor(new Uri("https://a:1"));

        Assert.False(with.SslOptions.AllowTlsResume);
        Assert.True(without.SslOptions.AllowTlsResume);
    }

    private Task<GrpcTestHost> StartAsync(bool usersHaveCertificates, KnownUsers? users = null)
    {
        KnownUsers known = users ?? _users;
        X509Certificate2Collection authorities = [_clients.Root];
        return GrpcTestHost.StartAsync(
            middleware: ConnectionCaller.Middleware,
            access: new AccessMiddleware(
                new Authenticator(known.State, _credential, _passwords)
                {
                    Certificates = usersHaveCertificates ? new CertificateSignIn(known.State) : null,
                },
                _audit),
            clientAuthorities: usersHaveCertificates ? () => authorities : null,
            map: app => InitAdminEndpoint.Map(app, new FirstAdministrator(known, _audit)),
            nodeHosts: [NodeHost],
            nodeAuthorities: [_nodes.Root]);
    }

    private static async Task<StatusCode> CallAsync(
        GrpcTestHost host, SslStreamCertificateContext? certificate, string? proof)
    {
        SslClientAuthenticationOptions tls = TestCertificate.Trust;
        tls.ClientCertificateContext = certificate;
        tls.AllowTlsResume = false;
        using GrpcChannel channel = TestChannels.To(host.Address, tls);
        Metadata headers = proof is null ? [] : new Metadata { { NodeCredential.Header, proof } };
        try
        {
            await channel.UnaryAsync(
                "/kahuna.v1.KeyValues/GetKeyValue",
                new GetKeyValueRequest { Key = "k", Durability = Server.Api.Protos.Durability.Persistent },
                GetKeyValueResponse.Parser,
                new CallOptions(headers));
            return StatusCode.OK;
        }
        catch (RpcException error)
        {
            return error.StatusCode;
        }
    }
}
