using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using Kahuna.Client;
using Kahuna.Client.Connection;
using Kahuna.Client.Connection.Access;
using Kahuna.Tests.Hosting;

namespace Kahuna.Tests.Client.Access;

/// <summary>What goes over the network: headers, client certificates, unary calls.</summary>
public sealed class CredentialNetworkTests : IDisposable
{
    private readonly TemporaryDirectory _directory = new();

    private string Certificate => Path.Combine(_directory.Path, "client.pem");

    private string Key => Path.Combine(_directory.Path, "client.key");

    public void Dispose() => _directory.Dispose();

    [Fact]
    public async Task Streams_and_calls_carry_the_header()
    {
        await using CredentialHost host = await CredentialHost.StartAsync();
        host.Answer = static context =>
        {
            CredentialHost.End(context, 16, "Who are you?");
            return Task.CompletedTask;
        };
        await using GrpcFrameChannel channel = new(Patient().ToSettings());
        StreamStatus[] ends =
        [
            await EndOfAsync(channel.OpenAsync(host.Address, "Bearer t", CancellationToken.None)),
            await EndOfAsync(channel.OpenWatchAsync(host.Address, "Bearer t", CancellationToken.None)),
            (await channel.CallAsync(
                host.Address, new UnaryCall("/kahuna.v1.Admin/WhoAmI", []), "Bearer t", CancellationToken.None)).Status,
        ];
        Assert.All(ends, static end => Assert.Equal(new StreamStatus(16, "Who are you?"), end));
        Assert.Equal(
            [
                ("/kahuna.v1.Cluster/Exchange", "Bearer t", null),
                ("/kahuna.v1.Cluster/Watch", "Bearer t", null),
                ("/kahuna.v1.Admin/WhoAmI", "Bearer t", null),
            ],
            host.Asked);
    }

    [Fact]
    public async Task A_call_sends_one_message_and_takes_one()
    {
        await using CredentialHost host = await CredentialHost.StartAsync();
        host.Answer = static async context =>
        {
            using MemoryStream body = new();
            await context.Request.Body.CopyToAsync(body);
            await context.Response.Body.WriteAsync(body.ToArray());
            CredentialHost.End(context, 0);
        };
        await using GrpcFrameChannel channel = new(Patient().ToSettings());
        byte[] sent = [1, 2, 3];
        CallAnswer answer = await channel.CallAsync(
            host.Address, new UnaryCall("/a/b", sent), null, CancellationToken.None);
        Assert.True(answer.Status.IsOK);
        Assert.Equal(sent, answer.Message);
        Assert.Null(host.Asked.Single().Authorization);
    }

    [Theory]
    [InlineData("did-not-happen", OperationOutcome.DidNotHappen)]
    [InlineData("unknown", OperationOutcome.Unknown)]
    [InlineData(null, OperationOutcome.Unknown)]
    public async Task A_refused_call_says_whether_it_happened(string? trailer, OperationOutcome expected)
    {
        await using CredentialHost host = await CredentialHost.StartAsync();
        host.Answer = context =>
        {
            CredentialHost.End(context, 14, "", trailer);
            return Task.CompletedTask;
        };
        await using GrpcFrameChannel channel = new(Patient().ToSettings());
        CallAnswer answer = await channel.CallAsync(
            host.Address, new UnaryCall("/a/b", []), null, CancellationToken.None);
        Assert.Equal((14, expected), (answer.Status.Code, answer.Outcome));
    }

    [Fact]
    public async Task A_call_without_an_answer_says_whether_it_was_sent()
    {
        await using CredentialHost host = await CredentialHost.StartAsync();
        host.Answer = static context =>
        {
            context.Abort();
            return Task.CompletedTask;
        };
        await using GrpcFrameChannel channel = new(Patient().ToSettings());
        UnaryCall call = new("/a/b", []);
        CallLostException lost = await Assert.ThrowsAsync<CallLostException>(
            () => channel.CallAsync(host.Address, call, null, CancellationToken.None).AsTask());
        Assert.True(lost.WasSent);
        CallLostException away = await Assert.ThrowsAsync<CallLostException>(
            () => channel.CallAsync(new Uri("https://127.0.0.1:9"), call, null, CancellationToken.None).AsTask());
        Assert.False(away.WasSent);
    }

    [Fact]
    public async Task A_client_certificate_is_shown_and_a_renewed_one_on_a_new_connection()
    {
        string first = Write("CN=first");
        await using CredentialHost host = await CredentialHost.StartAsync();
        host.Answer = static context =>
        {
            CredentialHost.End(context, 0);
            return Task.CompletedTask;
        };
        KahunaClientOptions options = Patient();
        options.Credentials = KahunaCredentials.ClientCertificate(Certificate, Key);
        await using GrpcFrameChannel channel = new(options.ToSettings());
        await AskAsync();
        string second = Write("CN=second");
        await AskAsync();
        File.Delete(Key);
        await AskAsync();
        Assert.Equal([first, second, second], host.Asked.Select(static asked => asked.Certificate));

        async Task AskAsync()
        {
            try
            {
                await using IFrameStream stream = await channel.OpenAsync(host.Address, null, CancellationToken.None);
            }
            catch (IOException)
            {
                // The server ends it at once.
            }
        }
    }

    [Fact]
    public void A_certificate_may_have_its_key_in_its_file_or_be_PFX()
    {
        string thumbprint = Write("CN=app");
        string both = Path.Combine(_directory.Path, "both.pem");
        File.WriteAllText(both, File.ReadAllText(Key) + "\n" + File.ReadAllText(Certificate));
        string packed = Path.Combine(_directory.Path, "both.pfx");
        using X509Certificate2 read = X509Certificate2.CreateFromPemFile(Certificate, Key);
        File.WriteAllBytes(packed, read.Export(X509ContentType.Pkcs12, "pw"));
        Assert.All(
            [
                new ClientCertificateFile(Certificate, Key, null), new ClientCertificateFile(both, null, null),
                new ClientCertificateFile(packed, null, "pw"),
            ],
            file => Assert.Equal(thumbprint, file.Read().TargetCertificate.Thumbprint));
        ClientCertificateFile same = new(both, null, null);
        Assert.Same(same.Read(), same.Read());
        IOException wrong = Assert.Throws<IOException>(
            () => new ClientCertificateFile(packed, null, "s3cret").Read());
        Assert.Contains(packed, wrong.Message, StringComparison.Ordinal);
        Assert.DoesNotContain("s3cret", wrong.Message, StringComparison.Ordinal);
        Assert.Throws<IOException>(() => new ClientCertificateFile(Certificate, null, null).Read());
    }

    private static KahunaClientOptions Patient() =>
        PatientClient.Prepare(new KahunaClientOptions { Insecure = true });

    private static async Task<StreamStatus> EndOfAsync(ValueTask<IFrameStream> opening)
    {
        try
        {
            await using IFrameStream stream = await opening;
            Assert.Equal(0, await stream.ReadAsync(new byte[16]));
            return stream.EndStatus!.Value;
        }
        catch (StreamRefusedException refused)
        {
            return refused.Status;
        }
    }

    private string Write(string subject)
    {
        using ECDsa key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        CertificateRequest request = new(subject, key, HashAlgorithmName.SHA256);
        using X509Certificate2 made = request.CreateSelfSigned(
            CertificateFiles.Start, CertificateFiles.Start.AddDays(365));
        File.WriteAllText(Certificate, made.ExportCertificatePem());
        File.WriteAllText(Key, key.ExportPkcs8PrivateKeyPem());
        return made.Thumbprint;
    }
}
