using System.Net;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

namespace Kahuna.Tests.Hosting;

/// <summary>A certificate and its key as PEM files, made to order. Owned by one test.</summary>
internal sealed class CertificateFiles(string directory)
{
    public static readonly DateTimeOffset Start = new(2030, 1, 1, 0, 0, 0, TimeSpan.Zero);

    public string Certificate { get; } = Path.Combine(directory, "cert.pem");

    public string Key { get; } = Path.Combine(directory, "key.pem");

    /// <summary>Writes both files; the certificate is for this host and valid for these days after <see cref="Start"/>.</summary>
    public void Write(string host, int fromDay = -1, int toDay = 365, string? usage = null)
    {
        using ECDsa key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        CertificateRequest request = new("CN=" + host, key, HashAlgorithmName.SHA256);
        SubjectAlternativeNameBuilder names = new();
        if (IPAddress.TryParse(host, out IPAddress? address))
        {
            names.AddIpAddress(address);
        }
        else
        {
            names.AddDnsName(host);
        }

        request.CertificateExtensions.Add(names.Build());
        if (usage is not null)
        {
            request.CertificateExtensions.Add(new X509EnhancedKeyUsageExtension([new Oid(usage)], critical: false));
        }

        using X509Certificate2 made = request.CreateSelfSigned(Start.AddDays(fromDay), Start.AddDays(toDay));
        File.WriteAllText(Certificate, made.ExportCertificatePem());
        File.WriteAllText(Key, key.ExportPkcs8PrivateKeyPem());
    }
}
