using System.Net.Security;

namespace Kahuna.Client.Connection.Access;

/// <summary>
/// Says which certificate the next connections show, for a program that keeps its certificate itself. Any thread.
/// </summary>
/// <param name="current">The same object until the certificate is replaced.</param>
internal sealed class CertificateSource(Func<SslStreamCertificateContext> current)
{
    public SslStreamCertificateContext Current => current();
}
