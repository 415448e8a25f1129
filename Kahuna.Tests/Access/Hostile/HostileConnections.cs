using System.Net;
using System.Net.Sockets;

namespace Kahuna.Tests.Access.Hostile;

/// <summary>
/// Connections of the hostile user: from an address of their own, where the system has several of its own, so that what
/// they use up of an address is not the legitimate users'. Stateless; any thread.
/// </summary>
internal static class HostileConnections
{
    /// <summary>Makes connections whose bytes are looked at.</summary>
    public static SocketsHttpHandler Handler(SecretMarker marker, HostileTally tally)
    {
        SocketsHttpHandler handler = new()
        {
            SslOptions = new() { RemoteCertificateValidationCallback = static (_, _, _, _) => true },
            UseProxy = false,
            AllowAutoRedirect = false,
            PlaintextStreamFilter = (context, _) =>
                ValueTask.FromResult<Stream>(new ScannedStream(context.PlaintextStream, marker, tally)),
        };
        if (OperatingSystem.IsLinux())
        {
            handler.ConnectCallback = async (context, ct) =>
                new NetworkStream(await ConnectAsync(context.DnsEndPoint.Port, ct), ownsSocket: true);
        }

        return handler;
    }

    /// <summary>Connects to a port of this machine; the caller disposes the socket.</summary>
    public static async Task<Socket> ConnectAsync(int port, CancellationToken ct)
    {
        Socket socket = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        try
        {
            if (OperatingSystem.IsLinux())
            {
                socket.Bind(new IPEndPoint(IPAddress.Parse("127.0.0.2"), 0));
            }

            await socket.ConnectAsync(new IPEndPoint(IPAddress.Loopback, port), ct);
            return socket;
        }
        catch
        {
            socket.Dispose();
            throw;
        }
    }
}
