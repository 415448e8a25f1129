using System.Net.Security;
using System.Security.Cryptography.X509Certificates;

namespace Kahuna.Server.Hosting.Certificates;

/// <summary>
/// The TLS material of a node: its certificate with the chain, and the authorities it trusts on outgoing connections
/// (null: the system's). Immutable; lives as long as the node.
/// </summary>
internal sealed record NodeTls(SslStreamCertificateContext Certificate, X509Certificate2Collection? TrustedRoots);
