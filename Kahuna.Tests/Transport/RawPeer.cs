using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using Kahuna.Server.Primitives;
using Kahuna.Server.Transport;

namespace Kahuna.Tests.Transport;

/// <summary>A peer that a test plays by hand.</summary>
internal static class RawPeer
{
    public static async Task<SslStream> DialTls(Uri address)
    {
        Socket socket = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        await socket.ConnectAsync(IPAddress.Loopback, address.Port);
        SslStream tls = new(new NetworkStream(socket, ownsSocket: true));
        await tls.AuthenticateAsClientAsync(new SslClientAuthenticationOptions
        {
            TargetHost = "localhost",
            ApplicationProtocols = [PeerProtocol.ApplicationProtocol],
            RemoteCertificateValidationCallback = (_, _, _, _) => true,
        });
        return tls;
    }

    public static void Prove(SslStream tls, PeerLinksOptions self) =>
        new PeerHandshake(
            self, tls, System.Security.Cryptography.SHA256.HashData(tls.RemoteCertificate!.GetRawCertData())).Dial(
            new NodeId(1));

    public static async Task AssertEnds(SslStream tls)
    {
        byte[] buffer = new byte[256];
        using CancellationTokenSource limit = new(LastNet.Span);
        try
        {
            while (await tls.ReadAsync(buffer, limit.Token) > 0)
            {
            }
        }
        catch (IOException)
        {
            // A reset is an end, too.
        }
    }
}
