using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using Kahuna.Server.Transport;

namespace Kahuna.Server.Hosting.Certificates;

/// <summary>
/// Loads a node's certificate, reloads it when its files change, and warns before its chain expires. Compares contents,
/// not times, since a mounted secret changes by moving a link. Owned by the node, whose timer calls
/// <see cref="Check"/>; one call at a time.
/// </summary>
internal sealed class CertificateWatch
{
    /// <summary>Interval of the checks; each reads a few kilobytes.</summary>
    public static readonly TimeSpan Interval = TimeSpan.FromSeconds(10);

    private readonly IReadOnlyList<string> _files;
    private readonly Func<NodeTls> _load;
    private readonly TimeProvider _time;
    private readonly ILogger _log;
    private readonly ExpiryWarnings _warnings;
    private string _inUse;
    private string? _refused;
    private string? _reported;

    /// <summary>Loads the certificate.</summary>
    /// <param name="files">The files to watch.</param>
    /// <param name="load">Reads and checks them; throws <see cref="CertificateException"/>.</param>
    /// <param name="time">The clock.</param>
    /// <param name="log">Receives the events.</param>
    /// <exception cref="CertificateException">A file is unusable; the message is one line.</exception>
    public CertificateWatch(IReadOnlyList<string> files, Func<NodeTls> load, TimeProvider time, ILogger log)
    {
        _files = files;
        _load = load;
        _time = time;
        _log = log;
        _warnings = new ExpiryWarnings("connections with clients and other nodes", time, log);

        // The fingerprint comes first, so that files replaced after it are reloaded at the next check.
        _inUse = Fingerprint();
        NodeTls read = load();
        if (Fingerprint() is { } after && after != _inUse)
        {
            // The files were replaced meanwhile, or created by this load.
            _inUse = after;
            read = load();
        }

        Tls = new TlsSource(read.Certificate, read.TrustedRoots);
        CheckChain();
    }

    /// <summary>The node's certificate and trusted authorities; replaced when the files change.</summary>
    public TlsSource Tls { get; }

    /// <summary>Reloads changed files, and warns if it is time to. Never throws.</summary>
    public void Check()
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
            _warnings.BeginAgain();
            X509Certificate2 certificate = read.Certificate.TargetCertificate;
            _log.CertificateReloaded(certificate.Subject, certificate.NotAfter.ToUniversalTime());
            CheckChain();
        }
        catch (Exception error) when (
            error is CertificateException or IOException or UnauthorizedAccessException or CryptographicException)
        {
            // Certificate and key are separate files that change one after the other: files that are refused now may
            // match a moment later. Retried at each check, since a certificate that is not valid yet becomes valid
            // without a change of its file.
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
        (string part, X509Certificate2 first) = CertificateChain.FirstToEnd(Tls.Current, _time.GetUtcNow().UtcDateTime);
        _warnings.Look(part, first);
    }

    /// <summary>A hash of the files' contents; an unreadable file counts as a content of its own.</summary>
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
