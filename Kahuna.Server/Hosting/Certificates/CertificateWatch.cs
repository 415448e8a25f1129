using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using Kahuna.Server.Transport;

namespace Kahuna.Server.Hosting.Certificates;

/// <summary>
/// Reads a node's certificate, again when its files have changed, and warns before it, or what it depends on, ends. Contents are compared and not times, since a mounted secret
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

    private readonly IReadOnlyList<string> _files;
    private readonly Func<NodeTls> _load;
    private readonly TimeProvider _time;
    private readonly ILogger _log;
    private string _inUse;
    private string? _refused;
    private string? _reported;
    private DateTimeOffset _warnFrom = DateTimeOffset.MinValue;

    /// <summary>Reads the certificate for the first time.</summary>
    /// <param name="files">The files to watch.</param>
    /// <param name="load">Reads and checks them; throws <see cref="CertificateException"/>.</param>
    /// <param name="time">Says what time it is.</param>
    /// <param name="log">Gets the events.</param>
    /// <exception cref="CertificateException">A file cannot be used; the message is one line.</exception>
    public CertificateWatch(IReadOnlyList<string> files, Func<NodeTls> load, TimeProvider time, ILogger log)
    {
        _files = files;
        _load = load;
        _time = time;
        _log = log;

        // The fingerprint comes first: files that are replaced between the two are then read again at the next look.
        _inUse = Fingerprint();
        NodeTls read = load();
        if (Fingerprint() is { } after && after != _inUse)
        {
            // Replaced meanwhile, or made by this very reading.
            _inUse = after;
            read = load();
        }

        Tls = new TlsSource(read.Certificate, read.TrustedRoots);
        CheckChain();
    }

    /// <summary>What the node shows and trusts; replaced here when the files change.</summary>
    public TlsSource Tls { get; }

    /// <summary>Reads changed files and warns when it is time to. Never throws.</summary>
    public void Look()
    {
        string found = Fingerprint();
        if (found != _inUse)
        {
            Reload(found);
        }
        else
        {
            _refused = _reported = null;
        }

        Warn();
    }

    private void Reload(string found)
    {
        try
        {
            NodeTls read = _load();
            Tls.Replace(read.Certificate, read.TrustedRoots);
            _inUse = found;
            _refused = _reported = null;
            _warnFrom = DateTimeOffset.MinValue;
            X509Certificate2 certificate = read.Certificate.TargetCertificate;
            _log.CertificateReloaded(certificate.Subject, certificate.NotAfter.ToUniversalTime());
            CheckChain();
        }
        catch (Exception error) when (error is CertificateException or IOException or UnauthorizedAccessException or CryptographicException)
        {
            // Certificate and key are files of their own and change one after the other: what is refused now may be whole a moment later. It is tried at each
            // look, since a certificate of the future becomes valid without a change of its file.
            if (_refused == found && _reported != found)
            {
                _log.CertificateNotReloaded(error.Message);
                _reported = found;
            }

            _refused = found;
        }
    }

    private void CheckChain()
    {
        if (CertificateChain.Objection(Tls.Current, _time.GetUtcNow().UtcDateTime) is { } reason)
        {
            _log.CertificateNotUnderTrustedCa(Tls.Current.Certificate.TargetCertificate.Subject, reason);
        }
    }

    private void Warn()
    {
        DateTimeOffset now = _time.GetUtcNow();
        if (now < _warnFrom)
        {
            return;
        }

        (string part, X509Certificate2 certificate) = CertificateChain.FirstToEnd(Tls.Current, now.UtcDateTime);
        DateTime end = certificate.NotAfter.ToUniversalTime();
        if (end <= now.UtcDateTime)
        {
            _warnFrom = now + s_warnAgain;
            _log.CertificateEnded(part, certificate.Subject, end);
        }
        else if (end - now.UtcDateTime <= WarnBefore)
        {
            // The end itself is told when it comes.
            _warnFrom = now + s_warnAgain < end ? now + s_warnAgain : end;
            _log.CertificateEndsSoon(part, certificate.Subject, end, (int)(end - now.UtcDateTime).TotalDays);
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
