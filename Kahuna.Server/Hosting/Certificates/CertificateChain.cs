using System.Security.Cryptography.X509Certificates;
using Kahuna.Server.Transport;

namespace Kahuna.Server.Hosting.Certificates;

/// <summary>
/// Checks what a node's certificate depends on: its intermediate certificates and the trusted authorities. Stateless.
/// </summary>
internal static class CertificateChain
{
    /// <summary>
    /// The certificate that expires first, and its role. Expired authorities are ignored while another one is valid,
    /// because an old one may stay in the file.
    /// </summary>
    public static (string Part, X509Certificate2 Certificate) FirstToEnd(TlsMaterial tls, DateTime now)
    {
        (string Part, X509Certificate2 Certificate) first = ("The certificate", tls.Certificate.TargetCertificate);
        foreach (X509Certificate2 between in tls.Certificate.IntermediateCertificates)
        {
            if (between.NotAfter < first.Certificate.NotAfter)
            {
                first = ("The intermediate certificate", between);
            }
        }

        if (tls.TrustedRoots is { Count: > 0 } roots)
        {
            X509Certificate2 root = FirstToEnd(roots, now);
            if (root.NotAfter < first.Certificate.NotAfter)
            {
                first = ("The trusted authority", root);
            }
        }

        return first;
    }

    /// <summary>
    /// The valid authority that expires first; if all have expired, the last of them. An old one may stay in a file.
    /// </summary>
    /// <param name="authorities">At least one.</param>
    /// <param name="now">The time, UTC.</param>
    public static X509Certificate2 FirstToEnd(X509Certificate2Collection authorities, DateTime now) =>
        authorities.Where(authority => authority.NotAfter.ToUniversalTime() > now)
            .MinBy(static authority => authority.NotAfter)
            ?? authorities.MaxBy(static authority => authority.NotAfter)!;

    /// <summary>
    /// Why the node's own certificate does not chain to an authority that the node trusts. Null if it does, or if the
    /// node trusts the system's authorities.
    /// </summary>
    public static string? Objection(TlsMaterial tls, DateTime now)
    {
        if (tls.TrustedRoots is not { } roots)
        {
            return null;
        }

        using X509Chain chain = new();
        chain.ChainPolicy.TrustMode = X509ChainTrustMode.CustomRootTrust;
        chain.ChainPolicy.CustomTrustStore.AddRange(roots);
        foreach (X509Certificate2 between in tls.Certificate.IntermediateCertificates)
        {
            chain.ChainPolicy.ExtraStore.Add(between);
        }

        chain.ChainPolicy.RevocationMode = X509RevocationMode.NoCheck;
        chain.ChainPolicy.DisableCertificateDownloads = true;
        chain.ChainPolicy.VerificationTime = now;
        return chain.Build(tls.Certificate.TargetCertificate)
            ? null
            : string.Join(", ", chain.ChainStatus.Select(static status => status.Status).Distinct());
    }
}
