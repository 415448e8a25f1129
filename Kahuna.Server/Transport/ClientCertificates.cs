using System.Net.Security;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using Kahuna.Server.Primitives;
using Microsoft.AspNetCore.Connections;

namespace Kahuna.Server.Transport;

/// <summary>
/// Asks the clients of the HTTP server for certificates, and notes on the connection whose they are
/// (<see cref="ShownCertificate"/>): of a user, if an authority of users issued it, and of a node, if an authority of
/// the nodes did, for the host of one. A client may show none. Owned by the node; any thread.
/// </summary>
internal sealed class ClientCertificates
{
    /// <summary>
    /// The authorities of users, asked for each connection. Null: a certificate that is not a node's proves nothing,
    /// and its client is served as one without. Else requests are refused unless one of them, or of the nodes, issued
    /// it.
    /// </summary>
    public Func<X509Certificate2Collection>? UserAuthorities { get; init; }

    /// <summary>The hosts of the nodes as <c>--peers</c> names them. Empty: no certificate is a node's.</summary>
    public IReadOnlyList<string> NodeHosts { get; init; } = [];

    /// <summary>Makes the handshake of a connection ask, if there is anything to ask for.</summary>
    /// <param name="options">The options of the handshake.</param>
    /// <param name="own">This node's certificate and the authorities of the nodes.</param>
    /// <param name="connection">Gets the <see cref="ShownCertificate"/>.</param>
    public void AskFor(SslServerAuthenticationOptions options, TlsMaterial own, ConnectionContext connection)
    {
        X509Certificate2Collection? users = UserAuthorities?.Invoke();
        if (users is null && NodeHosts.Count == 0)
        {
            return;
        }

        options.ClientCertificateRequired = true;
        options.CertificateChainPolicy = users is null
            ? PeerCertificate.ChainPolicy(own.TrustedRoots)
            : PolicyOf(users);
        options.RemoteCertificateValidationCallback = (_, certificate, chain, errors) =>
        {
            if (certificate is not X509Certificate2 shown)
            {
                return true;
            }

            bool isTrusted = errors == SslPolicyErrors.None;
            bool isUser = users is not null && isTrusted;
            bool isNode = NodeHosts.Any(host => PeerCertificate.IsFor(shown, host))
                && (users is null ? isTrusted : IsUnder(shown, chain, own));
            connection.Features.Set(new ShownCertificate(isNode, isUser));

            // Requests are refused, with a sentence; .NET cannot say in the handshake why it ends.
            return true;
        };
    }

    /// <summary>The chain once more, to the authorities of the nodes.</summary>
    private static bool IsUnder(X509Certificate2 certificate, X509Chain? received, TlsMaterial own)
    {
        using X509Chain chain = new() { ChainPolicy = PeerCertificate.ChainPolicy(own.TrustedRoots) };
        if (received is not null)
        {
            chain.ChainPolicy.ExtraStore.AddRange(received.ChainPolicy.ExtraStore);
        }

        return chain.Build(certificate);
    }

    /// <summary>Trusts these authorities alone. Intermediate ones among them are used to build the chain.</summary>
    private static X509ChainPolicy PolicyOf(X509Certificate2Collection authorities)
    {
        X509ChainPolicy policy = new()
        {
            TrustMode = X509ChainTrustMode.CustomRootTrust,
            RevocationMode = X509RevocationMode.NoCheck,
            DisableCertificateDownloads = true,
        };
        policy.ApplicationPolicy.Add(new Oid(PeerCertificate.ClientUse));
        foreach (X509Certificate2 authority in authorities)
        {
            bool isRoot = authority.SubjectName.RawData.AsSpan().SequenceEqual(authority.IssuerName.RawData);
            (isRoot ? policy.CustomTrustStore : policy.ExtraStore).Add(authority);
        }

        return policy;
    }
}
