using System.Net.Security;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

namespace Kahuna.Server.Transport;

/// <summary>
/// A node's certificate with its chain, shown to nodes and clients, and the authorities that it trusts for other nodes
/// (null: the system's). Immutable.
/// </summary>
internal sealed record TlsMaterial(SslStreamCertificateContext Certificate, X509Certificate2Collection? TrustedRoots)
{
    /// <summary>SHA-256 of the certificate, which the proofs between nodes include.</summary>
    public byte[] CertificateHash { get; } = SHA256.HashData(Certificate.TargetCertificate.RawDataMemory.Span);
}

/// <summary>
/// A node's current TLS certificate and trust. Replaceable while the node runs: new connections use the new material,
/// established ones keep theirs. Owned by the node; any thread.
/// </summary>
internal sealed class TlsSource(
    SslStreamCertificateContext certificate, X509Certificate2Collection? trustedRoots = null)
{
    private volatile TlsMaterial _current = new(certificate, trustedRoots);

    public TlsMaterial Current => _current;

    public void Replace(SslStreamCertificateContext certificate, X509Certificate2Collection? trustedRoots) =>
        _current = new TlsMaterial(certificate, trustedRoots);
}
