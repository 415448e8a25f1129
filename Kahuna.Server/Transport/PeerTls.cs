using System.Net.Security;
using System.Security.Authentication;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using Kahuna.Wire.Sockets;

namespace Kahuna.Server.Transport;

/// <summary>
/// Turns a connected socket into a proven connection: TLS, then the handshake. Blocks the calling thread; a caller sets
/// a timeout by closing the socket. Sessions are never resumed: each link shows the certificates of its time, and a
/// session that was begun without one would hide the dialler's. Any thread.
/// </summary>
internal sealed class PeerTls(PeerLinksOptions options, LogThrottle throttle, ILogger logger)
{
    /// <summary>Authenticates the side that connected.</summary>
    /// <param name="socket">The connection.</param>
    /// <param name="link">The link that it is for.</param>
    /// <param name="offer">The highest version to offer.</param>
    public PeerConnection Dial(BlockingSocket socket, PeerLink link, ushort offer)
    {
        TlsMaterial own = options.Tls.Current;
        SslStream tls = new(socket, leaveInnerStreamOpen: false);
        try
        {
            tls.AuthenticateAsClient(new SslClientAuthenticationOptions
            {
                TargetHost = link.Address.IdnHost,
                ApplicationProtocols = [PeerProtocol.ApplicationProtocol],
                CertificateChainPolicy = ChainPolicy(own),
                ClientCertificateContext = options.TlsMode == PeerTlsMode.Secret ? null : own.Certificate,
                AllowRenegotiation = false,
                AllowTlsResume = false,
            });
            if (tls.NegotiatedApplicationProtocol != PeerProtocol.ApplicationProtocol)
            {
                throw new AuthenticationException(
                    $"it does not speak {PeerProtocol.ApplicationProtocol}; is it a Kahuna node?");
            }

            byte[] hash = SHA256.HashData(tls.RemoteCertificate!.GetRawCertData());
            PeerCertificate? shown = tls.IsMutuallyAuthenticated ? new PeerCertificate(own.CertificateHash) : null;
            ProvenPeer peer = new PeerHandshake(options, tls, hash, shown).Dial(link.Id, offer);
            return new PeerConnection(options, peer, socket, tls);
        }
        catch
        {
            tls.Dispose();
            throw;
        }
    }

    /// <summary>Authenticates the side that accepted.</summary>
    public PeerConnection Accept(BlockingSocket socket)
    {
        TlsMaterial own = options.Tls.Current;
        SslStream tls = new(socket, leaveInnerStreamOpen: false);
        try
        {
            PeerCertificate? shown = Authenticate(tls, own);
            PeerHandshake handshake = new(options, tls, own.CertificateHash, shown);
            ProvenPeer peer = handshake.Accept();
            if (handshake.CertificateObjection is { } objection && throttle.Allows($"certificate {peer.Id}"))
            {
                logger.WouldBeRefused(peer.Id, objection);
            }

            return new PeerConnection(options, peer, socket, tls);
        }
        catch
        {
            tls.Dispose();
            throw;
        }
    }

    /// <summary>
    /// TLS as the server. Which node's certificate it must be is known only after the hello, and a refusal in the
    /// handshake says more than a TLS alert; so any certificate passes here, and none counts before it is checked
    /// there.
    /// </summary>
    private PeerCertificate? Authenticate(SslStream tls, TlsMaterial own)
    {
        SslServerAuthenticationOptions server = new()
        {
            ServerCertificateContext = own.Certificate,
            ApplicationProtocols = [PeerProtocol.ApplicationProtocol],
            AllowRenegotiation = false,
            AllowTlsResume = false,
        };
        string? objection = null;
        if (options.TlsMode != PeerTlsMode.Secret)
        {
            server.ClientCertificateRequired = true;
            server.CertificateChainPolicy = PeerCertificate.ChainPolicy(own.TrustedRoots);
            server.RemoteCertificateValidationCallback = (_, _, chain, errors) =>
            {
                objection = PeerCertificate.ObjectionOf(chain, errors);
                return true;
            };
        }

        tls.AuthenticateAsServer(server);
        return tls.RemoteCertificate is X509Certificate2 shown ? new PeerCertificate(shown, objection) : null;
    }

    private static X509ChainPolicy ChainPolicy(TlsMaterial own)
    {
        X509ChainPolicy policy = new() { RevocationMode = X509RevocationMode.NoCheck };
        if (own.TrustedRoots is { } roots)
        {
            policy.TrustMode = X509ChainTrustMode.CustomRootTrust;
            policy.CustomTrustStore.AddRange(roots);
        }

        return policy;
    }
}
