using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using Kahuna.Server.Transport;

namespace Kahuna.Server.Hosting.Certificates;

/// <summary>
/// Reads a node's certificate again when its files have changed, and warns before it ends. Contents are compared and not times, since a mounted secret
/// changes by moving a link. Owned by the node, whose timer calls <see cref="Look"/>; one call at a time.
/// </summary>
internal sealed class CertificateWatch
{
    /// <summary>How often the files are looked at: a few kilobytes are read.</summary>
    public static readonly TimeSpan Interval = TimeSpan.FromSeconds(10);

    /// <summary>How long before its end a certificate is warned of.</summary>
    public static readonly TimeSpan WarnBefore = TimeSpan.FromDays(30);

    /// <summary>How often the end is warned of.</summary>
    private static readonly TimeSpan s_warnAgain = TimeSpan.FromDays(1);

    private readonly TlsSource _tls;
    private readonly IReadOnlyList<string> _files;
    private readonly Func<NodeTls> _load;
    private readonly TimeProvider _time;
    private readonly ILogger _log;
    private string _known;
    private string? _refused;
    private DateTimeOffset _warnFrom = DateTimeOffset.MinValue;

    /// <param name="tls">Gets what was read.</param>
    /// <param name="files">The files to watch.</param>
    /// <param name="load">Reads and checks them; throws <see cref="CertificateException"/>.</param>
    /// <param name="time">Says what time it is.</param>
    /// <param name="log">Gets the events.</param>
    public CertificateWatch(TlsSource tls, IReadOnlyList<string> files, Func<NodeTls> load, TimeProvider time, ILogger log)
    {
        _tls = tls;
        _files = files;
        _load = load;
        _time = time;
        _log = log;
        _known = Fingerprint();
    }

    /// <summary>Reads changed files and warns when it is time to. Never throws.</summary>
    public void Look()
    {
        string found = Fingerprint();
        if (found != _known)
        {
            Reload(found);
        }

        Warn();
    }

    private void Reload(string found)
    {
        try
        {
            NodeTls read = _load();
            _tls.Replace(read.Certificate, read.TrustedRoots);
            _known = found;
            _refused = null;
            _warnFrom = DateTimeOffset.MinValue;
            X509Certificate2 certificate = read.Certificate.TargetCertificate;
            _log.CertificateReloaded(certificate.Subject, certificate.NotAfter.ToUniversalTime());
        }
        catch (Exception error) when (error is CertificateException or IOException or UnauthorizedAccessException or CryptographicException)
        {
            // Certificate and key are files of their own and change one after the other: what is refused now may be whole a moment later.
            if (_refused == found)
            {
                _log.CertificateNotReloaded(error.Message);
                _known = found;
            }

            _refused = found;
        }
    }

    private void Warn()
    {
        DateTimeOffset now = _time.GetUtcNow();
        X509Certificate2 certificate = _tls.Current.Certificate.TargetCertificate;
        DateTime end = certificate.NotAfter.ToUniversalTime();
        if (now < _warnFrom || end - now.UtcDateTime > WarnBefore)
        {
            return;
        }

        _warnFrom = now + s_warnAgain;
        if (end <= now.UtcDateTime)
        {
            _log.CertificateEnded(certificate.Subject, end);
        }
        else
        {
            _log.CertificateEndsSoon(certificate.Subject, end, (int)(end - now.UtcDateTime).TotalDays);
        }
    }

    /// <summary>Two equal ones mean that nothing has changed; a file that cannot be read counts as another content.</summary>
    private string Fingerprint()
    {
        using IncrementalHash hash = IncrementalHash.CreateHash(HashAlgorithmName.SHA256);
        foreach (string file in _files)
        {
            try
            {
                hash.AppendData(SHA256.HashData(File.ReadAllBytes(file)));
            }
            catch (Exception error) when (error is IOException or UnauthorizedAccessException)
            {
                hash.AppendData("unreadable"u8);
            }
        }

        return Convert.ToHexString(hash.GetHashAndReset());
    }
}
