using System.Net.Security;
using System.Security.Cryptography.X509Certificates;

namespace Kahuna.Server.Hosting.Certificates;

/// <summary>
/// What a node needs for TLS: the certificate it shows (with its chain) and the authorities it trusts when it connects to other nodes
/// (null: the system's). Immutable; lives as long as the node.
/// </summary>
internal sealed record NodeTls(SslStreamCertificateContext Certificate, X509Certificate2Collection? TrustedRoots);
