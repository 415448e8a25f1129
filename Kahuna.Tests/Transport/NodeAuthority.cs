using System.Net;
using System.Net.Security;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using Kahuna.Server.Hosting.Certificates;

namespace Kahuna.Tests.Transport;

/// <summary>An authority that issues certificates of nodes, made for one test.</summary>
internal sealed class NodeAuthority
{
    public const string ServerUse = "1.3.6.1.5.5.7.3.1";

    public const string ClientUse = "1.3.6.1.5.5.7.3.2";

    private readonly X509Certificate2 _root = Authority("CN=nodes", null);

    public X509Certificate2 Root => X509CertificateLoader.LoadCertificate(_root.RawData);

    /// <summary>A node's certificate for a host, with the trust in this authority, or in another one.</summary>
    /// <param name="host">A name or an address.</param>
    /// <param name="uses">The extended key usages; none: those of servers and clients.</param>
    public NodeTls For(string host, params string[] uses) => new(ContextFor(host, uses), [Root]);

    /// <summary>The same, below an intermediate authority, whose certificate the node shows too.</summary>
    public NodeTls BelowAnother(string host)
    {
        X509Certificate2 between = Authority("CN=between", _root);
        return new NodeTls(
            SslStreamCertificateContext.Create(Issue(between, host, []), [between], offline: true), [Root]);
    }

    public SslStreamCertificateContext ContextFor(string host, params string[] uses) =>
        SslStreamCertificateContext.Create(Issue(_root, host, uses), null, offline: true);

    private static X509Certificate2 Issue(X509Certificate2 issuer, string host, string[] uses)
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
        OidCollection usages = [];
        foreach (string use in uses.Length == 0 ? [ServerUse, ClientUse] : uses)
        {
            usages.Add(new Oid(use));
        }

        request.CertificateExtensions.Add(new X509EnhancedKeyUsageExtension(usages, critical: false));
        using X509Certificate2 made = request.Create(
            issuer, DateTimeOffset.UtcNow.AddDays(-1), DateTimeOffset.UtcNow.AddDays(1),
            RandomNumberGenerator.GetBytes(8));
        return Whole(made, key);
    }

    private static X509Certificate2 Authority(string name, X509Certificate2? issuer)
    {
        using ECDsa key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        CertificateRequest request = new(name, key, HashAlgorithmName.SHA256);
        request.CertificateExtensions.Add(new X509BasicConstraintsExtension(
            certificateAuthority: true, hasPathLengthConstraint: false, pathLengthConstraint: 0, critical: true));
        DateTimeOffset start = DateTimeOffset.UtcNow.AddDays(issuer is null ? -3 : -2);
        DateTimeOffset end = DateTimeOffset.UtcNow.AddDays(issuer is null ? 3 : 2);
        if (issuer is null)
        {
            return request.CreateSelfSigned(start, end);
        }

        using X509Certificate2 made = request.Create(issuer, start, end, RandomNumberGenerator.GetBytes(8));
        return Whole(made, key);
    }

    private static X509Certificate2 Whole(X509Certificate2 certificate, ECDsa key)
    {
        using X509Certificate2 whole = certificate.CopyWithPrivateKey(key);
        return X509CertificateLoader.LoadPkcs12(
            whole.Export(X509ContentType.Pfx), null, X509KeyStorageFlags.Exportable);
    }
}
