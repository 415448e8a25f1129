using System.Security.Cryptography;
using System.Text;
using Kahuna.Client.Connection.Access;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Cluster;

/// <summary>
/// Identifies a node's own calls to other nodes: a header with HMAC-SHA256(secret, "kahuna forwarder") in hexadecimal,
/// and, with mutual TLS, the node's certificate. It says that the connection carries requests of many clients, whose
/// limits the sending node has applied. It is sent only to servers with a trusted certificate. Any thread.
/// </summary>
internal sealed class NodeCredential
{
    public const string Header = "x-kahuna-node";

    private readonly ClusterSecrets _secrets;
    private readonly bool _needsCertificate;

    /// <param name="secrets">The cluster's secrets; none on a standalone node, where no header matches.</param>
    /// <param name="needsCertificate">Whether the header counts only with the certificate of a node.</param>
    public NodeCredential(ClusterSecrets secrets, bool needsCertificate = false) =>
        (_secrets, _needsCertificate) = (secrets, needsCertificate);

    /// <summary>The certificate that this node shows with its calls; null: none.</summary>
    public CertificateSource? Certificate { get; private init; }

    /// <summary>The same, with a certificate to show.</summary>
    public NodeCredential Showing(CertificateSource certificate) =>
        new(_secrets, _needsCertificate) { Certificate = certificate };

    /// <summary>The header's value; null on a standalone node. It changes with the secret.</summary>
    public string? Value => _secrets.Own is { Length: > 0 } secret ? ValueOf(secret) : null;

    /// <summary>True if the call comes from a node of this cluster.</summary>
    /// <param name="given">The header's value; null: there is none.</param>
    /// <param name="shown">What the certificate of the connection proves; null: there is none.</param>
    public bool IsNode(string? given, ShownCertificate? shown) =>
        (!_needsCertificate || shown is { IsNode: true }) && Matches(given);

    /// <summary>
    /// True if the caller knows a secret of this cluster, node or not: enough to make the first administrator.
    /// </summary>
    public bool Matches(string? given)
    {
        if (given is null)
        {
            return false;
        }

        bool matches = false;
        byte[] bytes = Encoding.UTF8.GetBytes(given);
        foreach (byte[] secret in _secrets.Accepted)
        {
            matches |= CryptographicOperations.FixedTimeEquals(Encoding.ASCII.GetBytes(ValueOf(secret)), bytes);
        }

        return matches;
    }

    private static string ValueOf(byte[] secret) =>
        Convert.ToHexStringLower(HMACSHA256.HashData(secret, "kahuna forwarder"u8));
}
