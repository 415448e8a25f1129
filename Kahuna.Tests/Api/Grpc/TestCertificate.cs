using System.Net;
using System.Net.Security;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>One self-signed certificate for 127.0.0.1 and localhost, made once a run. Any thread.</summary>
internal static class TestCertificate
{
    private static readonly Lazy<X509Certificate2> s_certificate = new(Make);

    public static X509Certificate2 Instance => s_certificate.Value;

    /// <summary>Trust in that certificate and in no other.</summary>
    public static SslClientAuthenticationOptions Trust => new()
    {
        RemoteCertificateValidationCallback = static (_, certificate, _, _) =>
            certificate is not null
                && certificate.GetCertHashString(HashAlgorithmName.SHA256)
                    == Instance.GetCertHashString(HashAlgorithmName.SHA256),
    };

    private static X509Certificate2 Make()
    {
        using ECDsa key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        CertificateRequest request = new("CN=kahuna-test", key, HashAlgorithmName.SHA256);
        SubjectAlternativeNameBuilder names = new();
        names.AddIpAddress(IPAddress.Loopback);
        names.AddDnsName("localhost");
        request.CertificateExtensions.Add(names.Build());
        request.CertificateExtensions.Add(new X509BasicConstraintsExtension(
            certificateAuthority: true, hasPathLengthConstraint: false, pathLengthConstraint: 0, critical: true));
        using X509Certificate2 made = request.CreateSelfSigned(
            DateTimeOffset.UtcNow.AddDays(-1), DateTimeOffset.UtcNow.AddDays(1));
        return X509CertificateLoader.LoadPkcs12(made.Export(X509ContentType.Pfx), null, X509KeyStorageFlags.Exportable);
    }
}
