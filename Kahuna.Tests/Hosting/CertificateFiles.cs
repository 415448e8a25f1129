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

    public string Authorities { get; } = Path.Combine(directory, "ca.pem");

    /// <summary>
    /// Writes a certificate with the intermediate one and the authorities, of which the first issues; each is valid to
    /// its day after <see cref="Start"/>.
    /// </summary>
    public void WriteChain(string host, int toDay, int betweenToDay, params int[] rootsToDay)
    {
        X509Certificate2[] roots = [.. rootsToDay.Select((day, i) => Authority($"CN=root {i + 1}", day, null))];
        using X509Certificate2 between = Authority("CN=between", betweenToDay, roots[0]);
        using ECDsa key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        using X509Certificate2 made = Request(host, key).Create(
            between.SubjectName,
            X509SignatureGenerator.CreateForECDsa(between.GetECDsaPrivateKey()!),
            Start.AddDays(-1),
            Start.AddDays(toDay),
            [1]);
        File.WriteAllText(Certificate, made.ExportCertificatePem() + "\n" + between.ExportCertificatePem());
        File.WriteAllText(Key, key.ExportPkcs8PrivateKeyPem());
        File.WriteAllText(Authorities, string.Join('\n', roots.Select(root => root.ExportCertificatePem())));
    }

    /// <summary>
    /// Writes both files; the certificate is for this host and valid for these days after <see cref="Start"/>.
    /// </summary>
    public void Write(string host, int fromDay = -1, int toDay = 365, string? usage = null)
    {
        using ECDsa key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        CertificateRequest request = Request(host, key);
        if (usage is not null)
        {
            request.CertificateExtensions.Add(new X509EnhancedKeyUsageExtension([new Oid(usage)], critical: false));
        }

        using X509Certificate2 made = request.CreateSelfSigned(Start.AddDays(fromDay), Start.AddDays(toDay));
        File.WriteAllText(Certificate, made.ExportCertificatePem());
        File.WriteAllText(Key, key.ExportPkcs8PrivateKeyPem());
    }

    private static CertificateRequest Request(string host, ECDsa key)
    {
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
        return request;
    }

    private static X509Certificate2 Authority(string name, int toDay, X509Certificate2? issuer)
    {
        using ECDsa key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        CertificateRequest request = new(name, key, HashAlgorithmName.SHA256);
        request.CertificateExtensions.Add(new X509BasicConstraintsExtension(
            certificateAuthority: true, hasPathLengthConstraint: false, pathLengthConstraint: 0, critical: true));
        if (issuer is null)
        {
            return request.CreateSelfSigned(Start.AddDays(-2), Start.AddDays(toDay));
        }

        // An issuer may end before what it has issued, so the check that the one lies within the other is left out.
        using X509Certificate2 made = request.Create(
            issuer.SubjectName,
            X509SignatureGenerator.CreateForECDsa(issuer.GetECDsaPrivateKey()!),
            Start.AddDays(-2),
            Start.AddDays(toDay),
            [2]);
        return made.CopyWithPrivateKey(key);
    }
}
