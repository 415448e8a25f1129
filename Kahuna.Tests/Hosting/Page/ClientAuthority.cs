using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

namespace Kahuna.Tests.Hosting.Page;

/// <summary>An authority that issues certificates to users. Owned by one test.</summary>
internal sealed class ClientAuthority : IDisposable
{
    private const string ClientUse = "1.3.6.1.5.5.7.3.2";

    private readonly ECDsa _key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
    private readonly X509Certificate2 _certificate;
    private byte _serial;

    /// <summary>Makes it.</summary>
    /// <param name="subject">Its name, as <c>CN=clients</c>.</param>
    public ClientAuthority(string subject)
    {
        CertificateRequest request = new(subject, _key, HashAlgorithmName.SHA256);
        request.CertificateExtensions.Add(new X509BasicConstraintsExtension(true, false, 0, critical: true));
        _certificate = request.CreateSelfSigned(DateTimeOffset.UtcNow.AddDays(-10), DateTimeOffset.UtcNow.AddDays(10));
    }

    /// <summary>What a node's <c>--auth-client-ca</c> holds.</summary>
    public string Pem => _certificate.ExportCertificatePem();

    /// <summary>A certificate with its key as PKCS #12, without a password.</summary>
    public byte[] Issue(string subject)
    {
        using ECDsa key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        CertificateRequest request = new(subject, key, HashAlgorithmName.SHA256);
        request.CertificateExtensions.Add(new X509EnhancedKeyUsageExtension([new Oid(ClientUse)], critical: false));
        using X509Certificate2 made = request.Create(
            _certificate, DateTimeOffset.UtcNow.AddDays(-5), DateTimeOffset.UtcNow.AddDays(5), [++_serial]);
        using X509Certificate2 whole = made.CopyWithPrivateKey(key);
        return whole.Export(X509ContentType.Pfx);
    }

    public void Dispose()
    {
        _certificate.Dispose();
        _key.Dispose();
    }
}
