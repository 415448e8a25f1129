using System.Net.Security;
using System.Net.Sockets;
using System.Runtime.Versioning;
using System.Security.Cryptography.X509Certificates;
using Kahuna.Server.Hosting.Certificates;

namespace Kahuna.Tests.Hosting;

/// <summary>The development authority and its certificate: made once, kept, used again.</summary>
public sealed class DevelopmentCertificatesTests : IDisposable
{
    private readonly TemporaryDirectory _directory = new();

    public void Dispose() => _directory.Dispose();

    [Fact]
    public void Made_once_and_used_again()
    {
        NodeTls first = Ensure(TimeSpan.Zero, "127.0.0.1");
        NodeTls second = Ensure(TimeSpan.FromDays(30), "localhost");

        Assert.Equal(first.Certificate.TargetCertificate.Thumbprint, second.Certificate.TargetCertificate.Thumbprint);
        Assert.Equal(first.TrustedRoots![0].Thumbprint, second.TrustedRoots![0].Thumbprint);
        Assert.True(second.Certificate.TargetCertificate.HasPrivateKey);
        Assert.False(second.TrustedRoots[0].HasPrivateKey);
    }

    [Fact]
    [UnsupportedOSPlatform("windows")]
    public void Keys_are_for_their_owner_only()
    {
        Ensure(TimeSpan.Zero);
        string key = Path.Combine(_directory.Path, DevelopmentCertificates.NodeKeyFile);
        File.SetUnixFileMode(key, UnixFileMode.UserRead | UnixFileMode.UserWrite | UnixFileMode.OtherRead);
        Ensure(TimeSpan.Zero);

        foreach (string file in new[] { key, Path.Combine(_directory.Path, DevelopmentCertificates.CaKeyFile) })
        {
            Assert.Equal(UnixFileMode.UserRead | UnixFileMode.UserWrite, File.GetUnixFileMode(file));
        }

        Assert.Empty(Directory.EnumerateFiles(_directory.Path, "*.tmp"));
    }

    [Theory]
    [InlineData("localhost", true)]
    [InlineData("127.0.0.1", true)]
    [InlineData("::1", true)]
    [InlineData("node-1.example", true)]
    [InlineData("10.1.2.3", true)]
    [InlineData("other.example", false)]
    public async Task A_client_that_knows_the_authority_trusts_the_names(string host, bool trusted)
    {
        NodeTls tls = Ensure(TimeSpan.Zero, "Node-1.example", "10.1.2.3", "0.0.0.0");
        X509Certificate2 authority = X509CertificateLoader.LoadCertificateFromFile(
            Path.Combine(_directory.Path, DevelopmentCertificates.CaFile));

        Assert.Equal(trusted, await Handshake(tls, authority, host));
    }

    [Fact]
    public async Task Another_authority_is_not_trusted()
    {
        using TemporaryDirectory other = new();
        NodeTls foreign = new DevelopmentCertificates(other.Path, TimeProvider.System).Ensure([]);

        Assert.False(await Handshake(Ensure(TimeSpan.Zero), foreign.TrustedRoots![0], "localhost"));
    }

    [Fact]
    public void A_new_name_gives_a_new_certificate_that_keeps_the_old_names()
    {
        NodeTls first = Ensure(TimeSpan.Zero, "one.example");
        NodeTls second = Ensure(TimeSpan.Zero, "two.example");
        NodeTls third = Ensure(TimeSpan.Zero, "one.example");

        Assert.NotEqual(
            first.Certificate.TargetCertificate.Thumbprint, second.Certificate.TargetCertificate.Thumbprint);
        Assert.Equal(second.Certificate.TargetCertificate.Thumbprint, third.Certificate.TargetCertificate.Thumbprint);
        Assert.Equal(first.TrustedRoots![0].Thumbprint, second.TrustedRoots![0].Thumbprint);
    }

    [Fact]
    public void A_name_that_no_certificate_can_have_is_left_out()
    {
        // As long as Linux lets the name of a machine be.
        NodeTls tls = Ensure(TimeSpan.Zero, new string('x', 64), "one.example");
        Assert.True(tls.Certificate.TargetCertificate.MatchesHostname("one.example"));
    }

    [Fact]
    public void Renewed_before_it_ends()
    {
        NodeTls first = Ensure(TimeSpan.Zero);
        NodeTls renewed = Ensure(TimeSpan.FromDays(700));
        NodeTls afterTheAuthority = Ensure(TimeSpan.FromDays(3649));

        Assert.NotEqual(
            first.Certificate.TargetCertificate.Thumbprint, renewed.Certificate.TargetCertificate.Thumbprint);
        Assert.Equal(first.TrustedRoots![0].Thumbprint, renewed.TrustedRoots![0].Thumbprint);
        Assert.NotEqual(first.TrustedRoots![0].Thumbprint, afterTheAuthority.TrustedRoots![0].Thumbprint);
    }

    [Theory]
    [InlineData(DevelopmentCertificates.CaFile, "")]
    [InlineData(DevelopmentCertificates.CaKeyFile, "garbage")]
    [InlineData(DevelopmentCertificates.NodeFile, "garbage")]
    [InlineData(DevelopmentCertificates.NodeKeyFile, null)]
    public void Half_a_pair_is_made_anew(string file, string? content)
    {
        Ensure(TimeSpan.Zero);
        string path = Path.Combine(_directory.Path, file);
        if (content is null)
        {
            File.Delete(path);
        }
        else
        {
            File.WriteAllText(path, content);
        }

        Assert.True(Ensure(TimeSpan.Zero).Certificate.TargetCertificate.HasPrivateKey);
    }

    [Fact]
    public async Task Starts_at_the_same_time_agree()
    {
        NodeTls[] all = await Task.WhenAll(Enumerable.Range(0, 8).Select(i => Task.Run(() => Ensure(TimeSpan.Zero))));

        Assert.Single(all.Select(tls => tls.Certificate.TargetCertificate.Thumbprint).Distinct());
    }

    [Fact]
    public async Task A_start_waits_while_another_process_holds_the_lock_and_says_so_once()
    {
        List<string> told = [];
        TaskCompletionSource twoMinutes = new(TaskCreationOptions.RunContinuationsAsynchronously);
        string path = Path.Combine(_directory.Path, "lock");
        FileStream held = new(path, FileMode.OpenOrCreate, FileAccess.ReadWrite, FileShare.None);
        SecondsPerLook time = new(() => twoMinutes.TrySetResult(), looks: 120);
        Task<NodeTls> start = Task.Run(() => new DevelopmentCertificates(_directory.Path, time, told.Add).Ensure([]));
        await Task.WhenAny(start, twoMinutes.Task);
        Assert.False(start.IsCompleted, "The start did not wait for two minutes.");
        await held.DisposeAsync();
        Assert.True((await start.WaitAsync(LastNet.Span)).Certificate.TargetCertificate.HasPrivateKey);
        Assert.Equal([path], told);
    }

    [Fact]
    public async Task A_lock_that_cannot_be_opened_is_not_waited_for()
    {
        // A socket in the place of the file is there and cannot be opened, and nobody holds it.
        using Socket socket = new(AddressFamily.Unix, SocketType.Stream, ProtocolType.Unspecified);
        socket.Bind(new UnixDomainSocketEndPoint(Path.Combine(_directory.Path, "lock")));
        Task<NodeTls> start = Task.Run(() => Ensure(TimeSpan.Zero));
        CertificateException error = await Assert.ThrowsAsync<CertificateException>(
            () => start.WaitAsync(LastNet.Span));

        Assert.StartsWith("Cannot create development certificates", error.Message, StringComparison.Ordinal);
        Assert.DoesNotContain("Another process", error.Message, StringComparison.Ordinal);
    }

    [Fact]
    public void A_lock_that_is_never_released_gives_one_line()
    {
        using FileStream held = new(
            Path.Combine(_directory.Path, "lock"), FileMode.OpenOrCreate, FileAccess.ReadWrite, FileShare.None);
        SecondsPerLook time = new(static () => { }, looks: int.MaxValue);
        CertificateException error = Assert.Throws<CertificateException>(() =>
            new DevelopmentCertificates(_directory.Path, time).Ensure([]));
        Assert.Contains(
            $"Another process has held the lock {held.Name} for 10 minutes", error.Message, StringComparison.Ordinal);
        Assert.DoesNotContain('\n', error.Message);
    }

    [Fact]
    public void A_directory_that_cannot_be_used_gives_one_line()
    {
        string file = _directory.File("file", "x");
        CertificateException error = Assert.Throws<CertificateException>(
            () => new DevelopmentCertificates(Path.Combine(file, "ca"), TimeProvider.System).Ensure([]));

        Assert.StartsWith("Cannot create development certificates in ", error.Message, StringComparison.Ordinal);
        Assert.DoesNotContain('\n', error.Message);
    }

    [Fact]
    public void Files_that_are_no_certificates_give_one_line()
    {
        string file = _directory.File("file", "x");
        CertificateException error = Assert.Throws<CertificateException>(
            () => NodeCertificates.LoadCertificate(file, file));

        Assert.StartsWith(
            $"Cannot use the certificate {file} with the key {file}", error.Message, StringComparison.Ordinal);
        Assert.DoesNotContain('\n', error.Message);
    }

    private static async Task<bool> Handshake(NodeTls tls, X509Certificate2 authority, string host)
    {
        (Stream a, Stream b) = await LoopbackPair.ConnectAsync();
        await using SslStream server = new(a);
        await using SslStream client = new(b);
        X509ChainPolicy policy =
            new() { TrustMode = X509ChainTrustMode.CustomRootTrust, RevocationMode = X509RevocationMode.NoCheck };
        policy.CustomTrustStore.Add(authority);
        Task serving = server.AuthenticateAsServerAsync(
            new SslServerAuthenticationOptions { ServerCertificateContext = tls.Certificate });
        try
        {
            await client.AuthenticateAsClientAsync(
                new SslClientAuthenticationOptions { TargetHost = host, CertificateChainPolicy = policy });
            await serving;
            return true;
        }
        catch (System.Security.Authentication.AuthenticationException)
        {
            await Task.WhenAny(serving);
            return false;
        }
    }

    private NodeTls Ensure(TimeSpan later, params string[] hosts) =>
        new DevelopmentCertificates(_directory.Path, new ShiftedTime(later)).Ensure(hosts);

    /// <summary>
    /// A clock that is a second later each time it is looked at; after a number of looks it tells and stands still.
    /// </summary>
    private sealed class SecondsPerLook(Action tell, int looks) : TimeProvider
    {
        private int _looks;

        public override long TimestampFrequency => 1;

        public override long GetTimestamp()
        {
            if (_looks < looks && ++_looks == looks)
            {
                tell();
            }

            return _looks;
        }
    }
}
