using System.CommandLine;
using System.Net;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Text.Json;
using Kahuna.Cli;
using Kahuna.Cli.Completion;
using Kahuna.Cli.Connecting;
using Kahuna.Cli.Terminal;
using Kahuna.Client;
using Kahuna.Tests.Hosting;

namespace Kahuna.Tests.Cli;

/// <summary>The one request of completion, and when it leaves the machine's authorities unread.</summary>
[Collection(CliClusterCollection.Name)]
public sealed class SingleRequestTests(CliCluster cluster) : IDisposable
{
    private readonly TemporaryDirectory _directory = new();

    private Uri Node => new(cluster.Endpoints.Split(',')[0]);

    public void Dispose() => _directory.Dispose();

    [Fact]
    public async Task A_node_answers_with_its_document_and_any_other_status_is_no_answer()
    {
        KahunaClientOptions options = new();
        byte[] found = (await GetAsync(options, "/healthz", default))!.Value.ToArray();
        Assert.NotEmpty(found);
        Assert.Null(await GetAsync(options, "/v1/scan?prefix=a", default));
        Assert.Null(await GetAsync(options, "/no/such/page", default));
        using JsonDocument page = JsonDocument.Parse(
            (await GetAsync(options, "/openapi.json", default))!.Value);
        Assert.Equal(JsonValueKind.Object, page.RootElement.ValueKind);
    }

    [Fact]
    public async Task A_node_that_is_not_trusted_gets_no_request()
    {
        KahunaClientOptions options = new() { TrustedCaFile = OtherAuthority() };
        await Assert.ThrowsAnyAsync<AuthenticationException>(() => GetAsync(options, "/healthz", default));
    }

    [Fact]
    public async Task A_node_that_is_silent_holds_nobody_past_the_end_of_the_wait()
    {
        using TcpListener silent = new(IPAddress.Loopback, 0);
        silent.Start();
        using CancellationTokenSource wait = new();
        Uri node = new($"https://127.0.0.1:{((IPEndPoint)silent.LocalEndpoint).Port}");
        Task<ReadOnlyMemory<byte>?> asked = Task.Run(
            () => SingleRequest.Get(node, "/", new KahunaClientOptions(), null, wait.Token));
        using TcpClient taken = await silent.AcceptTcpClientAsync().WaitAsync(LastNet.Span);
        await wait.CancelAsync();
        Exception failure = await Assert.ThrowsAnyAsync<Exception>(() => asked.WaitAsync(LastNet.Span));
        Assert.True(failure is IOException or SocketException or ObjectDisposedException, failure.ToString());
    }

    [Theory]
    [InlineData("get a", false)]
    [InlineData("get a --insecure", true)]
    [InlineData("get a --trusted-ca CA", true)]
    public async Task The_machines_authorities_are_left_out_where_none_of_them_counts(string line, bool expected)
    {
        bool isLeftOut = false;
        CliTool tool = cluster.Tool();
        CliEnvironment environment = tool.Around([], Stream.Null, TextWriter.Null) with
        {
            LeaveOutMachineAuthorities = () => isLeftOut = true,
        };
        CommandTree tree = new();
        KeyNames names = new(tree.Connection, environment) { Patience = LastNet.Call };
        ParseResult parsed = tree.Parse(line.Replace("CA", OtherAuthority(), StringComparison.Ordinal).Split(' '));
        await names.FindAsync(parsed, "a").WaitAsync(LastNet.Span);
        Assert.Equal(expected, isLeftOut);
    }

    private string OtherAuthority()
    {
        CertificateFiles files = new(_directory.Path);
        files.WriteChain("127.0.0.1", 1, 1, 1);
        return files.Authorities;
    }

    private Task<ReadOnlyMemory<byte>?> GetAsync(KahunaClientOptions options, string path, CancellationToken ct) =>
        Task.Run(() => SingleRequest.Get(Node, path, options, null, ct), ct).WaitAsync(LastNet.Span, ct);
}
