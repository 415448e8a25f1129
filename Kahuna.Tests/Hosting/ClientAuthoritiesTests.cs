using System.Security.Cryptography.X509Certificates;
using Kahuna.Server.Hosting.Certificates;
using Kahuna.Tests.Transport;

namespace Kahuna.Tests.Hosting;

/// <summary>The authorities of client certificates: read again, and warned of before they expire.</summary>
public sealed class ClientAuthoritiesTests : IDisposable
{
    private readonly TemporaryDirectory _directory = new();
    private readonly SteppedTime _time = new();
    private readonly LogRecorder _log = new();
    private readonly CertificateFiles _files;

    public ClientAuthoritiesTests() => _files = new CertificateFiles(_directory.Path);

    public void Dispose() => _directory.Dispose();

    [Fact]
    public void The_first_expiry_is_warned_of_once_a_day_and_told_when_it_comes()
    {
        _files.WriteChain("client.example", 365, 365, 100);
        ClientAuthorities authorities = Read();
        LookOn(authorities, day: 69);
        Assert.Empty(_log.Lines);
        LookOn(authorities, day: 71);
        LookOn(authorities, day: 71);
        Assert.Equal(1, _log.Count("The authority of client certificates CN=root 1 expires on 2030-04-11 00:00 UTC"));
        LookOn(authorities, day: 72);
        Assert.Equal(1, _log.Count("in 28 day(s)"));
        LookOn(authorities, day: 101);
        Assert.Equal(1, _log.Count("clients with certificates of this authority are refused"));
    }

    [Fact]
    public void A_replaced_file_is_taken_and_warned_of_at_once()
    {
        _files.WriteChain("client.example", 365, 365, 20);
        ClientAuthorities authorities = Read();
        LookOn(authorities, day: 1);
        Assert.Equal(1, _log.Count("in 18 day(s)"));
        _files.WriteChain("client.example", 365, 365, 25);
        LookOn(authorities, day: 1);
        Assert.Equal(1, _log.Count("were read again; there are 1"));
        Assert.Equal(1, _log.Count("in 23 day(s)"));
        _files.WriteChain("client.example", 365, 365, 365, 1);
        LookOn(authorities, day: 2);
        Assert.Equal(2, authorities.Current.Count);
        Assert.DoesNotContain(_log.Lines, line => line.Contains("expired", StringComparison.Ordinal));
    }

    [Theory]
    [InlineData(null)]
    [InlineData("no certificate")]
    public void An_unusable_file_is_told_once_and_changes_nothing(string? content)
    {
        _files.WriteChain("client.example", 365, 365, 365);
        ClientAuthorities authorities = Read();
        X509Certificate2Collection before = authorities.Current;
        string good = File.ReadAllText(_files.Authorities);
        Spoil(content);
        authorities.Check();
        authorities.Check();
        Assert.Same(before, authorities.Current);
        Assert.Equal(1, _log.Count("were not read again"));

        File.WriteAllText(_files.Authorities, good);
        authorities.Check();
        Spoil(content);
        authorities.Check();
        Assert.Equal(2, _log.Count("were not read again"));
    }

    private void Spoil(string? content)
    {
        if (content is null)
        {
            File.Delete(_files.Authorities);
        }
        else
        {
            File.WriteAllText(_files.Authorities, content);
        }
    }

    private ClientAuthorities Read() => new(_files.Authorities, _time, _log);

    private void LookOn(ClientAuthorities authorities, int day)
    {
        _time.Now = TimeSpan.FromDays(day) + TimeSpan.FromHours(1);
        authorities.Check();
    }
}
