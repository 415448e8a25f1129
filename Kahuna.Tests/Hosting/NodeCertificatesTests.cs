using Kahuna.Server.Hosting.Certificates;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Transport;
using Kahuna.Tests.Transport;

namespace Kahuna.Tests.Hosting;

/// <summary>
/// A certificate that clients would refuse is refused at the start; one that is replaced is read again; one that ends
/// is warned of.
/// </summary>
public sealed class NodeCertificatesTests : IDisposable
{
    private readonly TemporaryDirectory _directory = new();
    private readonly SteppedTime _time = new();
    private readonly LogRecorder _log = new();
    private readonly CertificateFiles _files;

    public NodeCertificatesTests() => _files = new CertificateFiles(_directory.Path);

    public void Dispose() => _directory.Dispose();

    [Theory]
    [InlineData("node.example")]
    [InlineData("10.1.2.3")]
    public void A_good_certificate_is_taken(string host)
    {
        _files.Write(host);

        Assert.True(Load(host).Certificate.TargetCertificate.HasPrivateKey);
    }

    [Fact]
    public void An_ended_certificate_is_refused()
    {
        _files.Write("node.example", fromDay: -30, toDay: -1);

        Assert.Contains("expired on 2029-12-31 00:00 UTC", Refusal(), StringComparison.Ordinal);
    }

    [Fact]
    public void A_certificate_of_the_future_is_refused()
    {
        _files.Write("node.example", fromDay: 1);

        Assert.Contains(
            "is valid from 2030-01-02 00:00 UTC, and it is 2030-01-01 00:00 UTC now",
            Refusal(),
            StringComparison.Ordinal);
    }

    [Fact]
    public void A_certificate_for_another_host_is_refused()
    {
        _files.Write("other.example");

        Assert.Contains("is not for node.example", Refusal(), StringComparison.Ordinal);
    }

    [Fact]
    public void A_certificate_that_servers_may_not_use_is_refused()
    {
        _files.Write("node.example", usage: "1.3.6.1.5.5.7.3.2");

        Assert.Contains("may not be used by servers", Refusal(), StringComparison.Ordinal);
    }

    [Fact]
    public void One_that_clients_may_not_use_is_refused_where_nodes_show_it()
    {
        _files.Write("node.example", usage: "1.3.6.1.5.5.7.3.1");

        Assert.NotNull(Load("node.example"));
        foreach (PeerTlsMode mode in (PeerTlsMode[])[PeerTlsMode.Offer, PeerTlsMode.Mutual])
        {
            string name = mode.ToString().ToLowerInvariant();
            Assert.Contains(
                $"may not be used by clients (extended key usage), which --peer-tls {name} needs",
                Assert.Throws<CertificateException>(() => Load("node.example", mode)).Message,
                StringComparison.Ordinal);
        }

        _files.Write("node.example");
        Assert.NotNull(Load("node.example", PeerTlsMode.Mutual));
    }

    [Fact]
    public void A_key_of_another_certificate_is_refused()
    {
        _files.Write("node.example");
        string key = File.ReadAllText(_files.Key);
        _files.Write("node.example");
        File.WriteAllText(_files.Key, key);

        Assert.StartsWith("Cannot use the certificate", Refusal(), StringComparison.Ordinal);
    }

    [Fact]
    public void A_file_without_a_key_is_refused()
    {
        _files.Write("node.example");
        File.Copy(_files.Certificate, _files.Key, overwrite: true);

        Assert.StartsWith("Cannot use the certificate", Refusal(), StringComparison.Ordinal);
    }

    [Fact]
    public void Replaced_files_are_used_and_half_of_them_is_not()
    {
        _files.Write("node.example");
        CertificateWatch watch = Watch(out TlsSource tls);
        string before = tls.Current.Certificate.TargetCertificate.Thumbprint;
        byte[] hashBefore = tls.Current.CertificateHash;
        watch.Check();
        Assert.Equal(before, tls.Current.Certificate.TargetCertificate.Thumbprint);

        // The key comes later than the certificate.
        string oldKey = File.ReadAllText(_files.Key);
        _files.Write("node.example", toDay: 500);
        string newKey = File.ReadAllText(_files.Key);
        File.WriteAllText(_files.Key, oldKey);
        watch.Check();
        Assert.Equal(before, tls.Current.Certificate.TargetCertificate.Thumbprint);
        Assert.Empty(_log.Lines);

        File.WriteAllText(_files.Key, newKey);
        watch.Check();
        Assert.NotEqual(before, tls.Current.Certificate.TargetCertificate.Thumbprint);
        Assert.NotEqual(hashBefore, tls.Current.CertificateHash);
        Assert.Equal(1, _log.Count("was reloaded"));
    }

    [Fact]
    public void Files_that_stay_unusable_are_reported_once_and_the_old_ones_stay()
    {
        _files.Write("node.example");
        CertificateWatch watch = Watch(out TlsSource tls);
        string before = tls.Current.Certificate.TargetCertificate.Thumbprint;
        _files.Write("other.example");
        for (int i = 0; i < 5; i++)
        {
            watch.Check();
        }

        Assert.Equal(before, tls.Current.Certificate.TargetCertificate.Thumbprint);
        Assert.Equal(1, _log.Count("stays in use: The certificate"));
    }

    [Fact]
    public void The_end_is_warned_of_for_thirty_days_once_a_day()
    {
        _files.Write("node.example", toDay: 100);
        CertificateWatch watch = Watch(out _);
        LookOn(watch, day: 69);
        Assert.Empty(_log.Lines);
        LookOn(watch, day: 71);
        LookOn(watch, day: 71);
        Assert.Equal(1, _log.Count("in 29 day(s)"));
        LookOn(watch, day: 72);
        Assert.Equal(1, _log.Count("in 28 day(s)"));
        LookOn(watch, day: 101);
        Assert.Equal(1, _log.Count("The certificate CN=node.example expired on 2030-04-11 00:00 UTC"));
    }

    [Fact]
    public void A_certificate_of_the_future_is_used_when_its_time_has_come()
    {
        _files.Write("node.example");
        CertificateWatch watch = Watch(out TlsSource tls);
        string before = tls.Current.Certificate.TargetCertificate.Thumbprint;
        _files.Write("node.example", fromDay: 1);
        for (int i = 0; i < 5; i++)
        {
            watch.Check();
        }

        Assert.Equal(before, tls.Current.Certificate.TargetCertificate.Thumbprint);
        Assert.Contains("is valid from 2030-01-02", Assert.Single(_log.Lines), StringComparison.Ordinal);
        LookOn(watch, day: 1);
        Assert.NotEqual(before, tls.Current.Certificate.TargetCertificate.Thumbprint);
        Assert.Equal(1, _log.Count("was reloaded"));
    }

    [Fact]
    public void Files_that_are_replaced_while_a_start_reads_them_are_read_again()
    {
        _files.Write("node.example");
        CertificateWatch watch = Watch(() =>
        {
            NodeTls read = Load("node.example");
            if (_log.Lines.IsEmpty)
            {
                _files.Write("node.example");
            }

            return read;
        });
        watch.Check();
        Assert.Equal(1, _log.Count("was reloaded"));
        watch.Check();
        Assert.Equal(
            Load("node.example").Certificate.TargetCertificate.Thumbprint,
            watch.Tls.Current.Certificate.TargetCertificate.Thumbprint);
    }

    [Theory]
    [InlineData("The certificate CN=node.example", 40, 100, 200)]
    [InlineData("The intermediate certificate CN=between", 100, 40, 200)]
    [InlineData("The trusted authority CN=root 1", 200, 100, 40)]
    [InlineData("The trusted authority CN=root 2", 200, 100, 400, 40)]
    public void Whatever_ends_first_is_warned_of(string what, int toDay, int betweenToDay, params int[] rootsToDay)
    {
        _files.WriteChain("node.example", toDay, betweenToDay, rootsToDay);
        CertificateWatch watch = Watch(out _);
        LookOn(watch, day: 9);
        Assert.Empty(_log.Lines);
        LookOn(watch, day: 11);
        Assert.StartsWith(
            $"{what} expires on 2030-02-10 00:00 UTC, in 29 day(s).",
            Assert.Single(_log.Lines),
            StringComparison.Ordinal);
    }

    [Fact]
    public void The_end_is_told_when_it_comes()
    {
        _files.WriteChain("node.example", 200, 40, 400);
        CertificateWatch watch = Watch(out _);
        _time.Now = TimeSpan.FromHours((40 * 24) - 1);
        watch.Check();
        LookOn(watch, day: 40);
        Assert.Equal(1, _log.Count("The intermediate certificate CN=between expired on 2030-02-10 00:00 UTC"));
    }

    [Fact]
    public void An_old_authority_beside_a_good_one_is_not_told()
    {
        _files.WriteChain("node.example", 100, 100, 200, -1);
        CertificateWatch watch = Watch(out _);
        watch.Check();
        Assert.Empty(_log.Lines);
    }

    [Fact]
    public void Authorities_that_have_all_ended_are_refused()
    {
        _files.WriteChain("node.example", 100, 100, 0, -1);

        Assert.Contains(
            $"Every authority in {_files.Authorities} has expired, the last one, CN=root 1, on 2030-01-01 00:00 UTC",
            Refusal(),
            StringComparison.Ordinal);
    }

    [Fact]
    public void A_certificate_that_is_not_under_the_trusted_authorities_is_told()
    {
        _files.WriteChain("node.example", 100, 100, 200);
        _ = Watch(out _);
        Assert.Empty(_log.Lines);

        string other = File.ReadAllText(_files.Authorities);
        _files.WriteChain("node.example", 100, 100, 200);
        File.WriteAllText(_files.Authorities, other);
        CertificateWatch watch = Watch(out _);
        Assert.StartsWith(
            "The certificate CN=node.example of this node does not chain to an authority of --trusted-ca: ",
            Assert.Single(_log.Lines),
            StringComparison.Ordinal);
        watch.Check();
        Assert.Single(_log.Lines);
    }

    private void LookOn(CertificateWatch watch, int day)
    {
        _time.Now = TimeSpan.FromDays(day);
        watch.Check();
    }

    private CertificateWatch Watch(out TlsSource tls)
    {
        CertificateWatch watch = Watch(() => Load("node.example"));
        tls = watch.Tls;
        return watch;
    }

    private CertificateWatch Watch(Func<NodeTls> load) =>
        new(NodeCertificates.Files(Options("node.example")), load, _time, _log);

    private string Refusal()
    {
        string message = Assert.Throws<CertificateException>(() => Load("node.example")).Message;
        Assert.DoesNotContain('\n', message);
        return message;
    }

    private NodeTls Load(string host, PeerTlsMode mode = PeerTlsMode.Secret) =>
        NodeCertificates.Load(Options(host) with { PeerTls = mode }, _time);

    private NodeOptions Options(string host) => new()
    {
        DataDirectory = _directory.Path,
        Advertise = new Uri($"https://{host}:8082"),
        CertificatePath = _files.Certificate,
        CertificateKeyPath = _files.Key,
        TrustedCaPath = File.Exists(_files.Authorities) ? _files.Authorities : null,
    };
}
