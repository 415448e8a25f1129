using System.Net.Security;
using System.Security.Cryptography.X509Certificates;

namespace Kahuna.Server.Transport;

/// <summary>
/// What a node shows and trusts in TLS at this moment. It can be replaced while the node runs: connections that are begun afterwards use the new
/// material, established ones go on with what they have. Owned by the node; any thread.
/// </summary>
internal sealed class TlsSource(SslStreamCertificateContext certificate, X509Certificate2Collection? trustedRoots = null)
{
    private volatile TlsMaterial _current = new(certificate, trustedRoots);

    public TlsMaterial Current => _current;

    public void Replace(SslStreamCertificateContext certificate, X509Certificate2Collection? trustedRoots) =>
        _current = new TlsMaterial(certificate, trustedRoots);
}
