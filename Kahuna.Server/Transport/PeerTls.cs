using System.Net.Security;
using System.Security.Authentication;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

namespace Kahuna.Server.Transport;

/// <summary>
/// Turns a connected socket into a proven connection: TLS, then the handshake. Blocks the calling thread; a caller sets
/// a timeout by closing the socket. Any thread.
/// </summary>
internal sealed class PeerTls(PeerLinksOptions options)
{
    /// <summary>Authenticates the side that connected.</summary>
    /// <param name="socket">The connection.</param>
    /// <param name="link">The link that it is for.</param>
    /// <param name="offer">The highest version to offer.</param>
    public PeerConnection Dial(PeerSocket socket, PeerLink link, ushort offer)
    {
        SslStream tls = new(socket, leaveInnerStreamOpen: false);
        try
        {
            tls.AuthenticateAsClient(new SslClientAuthenticationOptions
            {
                TargetHost = link.Address.IdnHost,
                ApplicationProtocols = [PeerProtocol.ApplicationProtocol],
                CertificateChainPolicy = ChainPolicy(),
                AllowRenegotiation = false,
            });
            if (tls.NegotiatedApplicationProtocol != PeerProtocol.ApplicationProtocol)
            {
                throw new AuthenticationException(
                    $"it does not speak {PeerProtocol.ApplicationProtocol}; is it a Kahuna node?");
            }

            byte[] hash = SHA256.HashData(tls.RemoteCertificate!.GetRawCertData());
            ProvenPeer peer = new PeerHandshake(options, tls, hash).Dial(link.Id, offer);
            return new PeerConnection(options, peer, socket, tls);
        }
        catch
        {
            tls.Dispose();
            throw;
        }
    }

    /// <summary>Authenticates the side that accepted.</summary>
    public PeerConnection Accept(PeerSocket socket)
    {
        TlsMaterial own = options.Tls.Current;
        SslStream tls = new(socket, leaveInnerStreamOpen: false);
        try
        {
            tls.AuthenticateAsServer(new SslServerAuthenticationOptions
            {
                ServerCertificateContext = own.Certificate,
                ApplicationProtocols = [PeerProtocol.ApplicationProtocol],
                AllowRenegotiation = false,
            });
            ProvenPeer peer = new PeerHandshake(options, tls, own.CertificateHash).Accept();
            return new PeerConnection(options, peer, socket, tls);
        }
        catch
        {
            tls.Dispose();
            throw;
        }
    }

    private X509ChainPolicy ChainPolicy()
    {
        X509ChainPolicy policy = new() { RevocationMode = X509RevocationMode.NoCheck };
        if (options.Tls.Current.TrustedRoots is { } roots)
        {
            policy.TrustMode = X509ChainTrustMode.CustomRootTrust;
            policy.CustomTrustStore.AddRange(roots);
        }

        return policy;
    }
}
