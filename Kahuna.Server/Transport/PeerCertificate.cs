using System.Net.Security;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

namespace Kahuna.Server.Transport;

/// <summary>
/// The certificate by which a node that connects proves which node it is, in addition to the cluster's secret. An
/// authority of the nodes issued it for clients, and one of its alternative names is the host that <c>--peers</c> gives
/// the node. Immutable; any thread.
/// </summary>
internal sealed class PeerCertificate
{
    /// <summary>The extended key usage of clients (RFC 5280, 4.2.1.12).</summary>
    public const string ClientUse = "1.3.6.1.5.5.7.3.2";

    private readonly X509Certificate2? _certificate;
    private readonly string? _chainObjection;

    /// <summary>A certificate that this node shows itself.</summary>
    /// <param name="hash">SHA-256 of the certificate.</param>
    public PeerCertificate(byte[] hash) => Hash = hash;

    /// <summary>A certificate that the other side has shown.</summary>
    /// <param name="certificate">The certificate.</param>
    /// <param name="chainObjection">Why it is not under an authority of the nodes; null if it is.</param>
    public PeerCertificate(X509Certificate2 certificate, string? chainObjection)
    {
        _certificate = certificate;
        _chainObjection = chainObjection;
        Hash = SHA256.HashData(certificate.RawDataMemory.Span);
    }

    /// <summary>SHA-256 of the certificate, which the proofs of both sides include.</summary>
    public byte[] Hash { get; }

    /// <summary>Why it is not the certificate of the node with this address; null if it is.</summary>
    public string? Objection(Uri address) =>
        _certificate is null ? "its certificate was not checked"
            : _chainObjection is not null ? $"its certificate is not accepted ({_chainObjection})"
            : IsFor(_certificate, HostOf(address)) ? null
            : $"its certificate ({Printable(_certificate.Subject)}) is not for {HostOf(address)}, the address of that "
                + "node in --peers";

    /// <summary>
    /// The rule for the chain of a node's certificate. Nothing is downloaded: the certificate may be a stranger's, and
    /// name any address.
    /// </summary>
    /// <param name="roots">The authorities of the nodes; null: the system's.</param>
    public static X509ChainPolicy ChainPolicy(X509Certificate2Collection? roots)
    {
        X509ChainPolicy policy = new()
        {
            RevocationMode = X509RevocationMode.NoCheck,
            DisableCertificateDownloads = true,
        };
        policy.ApplicationPolicy.Add(new Oid(ClientUse));
        if (roots is not null)
        {
            policy.TrustMode = X509ChainTrustMode.CustomRootTrust;
            policy.CustomTrustStore.AddRange(roots);
        }

        return policy;
    }

    /// <summary>Why TLS does not accept a chain; null if it does.</summary>
    public static string? ObjectionOf(X509Chain? chain, SslPolicyErrors errors) =>
        errors == SslPolicyErrors.None ? null
            : chain is { ChainStatus.Length: > 0 }
            ? string.Join(", ", chain.ChainStatus.Select(static status => status.Status).Distinct())
            : errors.ToString();

    /// <summary>
    /// One of the alternative names is this host, a name or an address. A common name does not count: it may be any
    /// text.
    /// </summary>
    public static bool IsFor(X509Certificate2 certificate, string host)
    {
        try
        {
            return certificate.MatchesHostname(host, allowWildcards: true, allowCommonName: false);
        }
        catch (CryptographicException)
        {
            // Malformed alternative names name nobody.
            return false;
        }
    }

    /// <summary>A subject may be any text, and must not end a line of the log.</summary>
    private static string Printable(string subject) =>
        string.Create(subject.Length, subject, static (printable, subject) =>
        {
            for (int i = 0; i < printable.Length; i++)
            {
                printable[i] = char.IsControl(subject[i]) ? '?' : subject[i];
            }
        });

    /// <summary>The host of an address as a certificate names it.</summary>
    public static string HostOf(Uri address) => address.IdnHost.Trim('[', ']');
}
