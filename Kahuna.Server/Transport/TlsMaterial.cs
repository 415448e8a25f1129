using System.Net.Security;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

namespace Kahuna.Server.Transport;

/// <summary>
/// The certificate that a node shows, with its chain, to nodes as to clients, and the authorities that it trusts for other nodes (null: the system's).
/// Immutable.
/// </summary>
internal sealed record TlsMaterial(SslStreamCertificateContext Certificate, X509Certificate2Collection? TrustedRoots)
{
    /// <summary>SHA-256 of the certificate, to which the proofs between nodes are bound.</summary>
    public byte[] CertificateHash { get; } = SHA256.HashData(Certificate.TargetCertificate.RawDataMemory.Span);
}
