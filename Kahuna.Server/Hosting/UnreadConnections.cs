using System.Net.Sockets;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Connections.Features;

namespace Kahuna.Server.Hosting;

/// <summary>
/// Ends the connections of peers that take no bytes although some wait for them. The web server ends calls that nobody
/// reads, but waits without a limit for the last bytes of a connection to leave. Stateless; any thread.
/// </summary>
/// <param name="patience">How long a peer may take no bytes.</param>
internal sealed class UnreadConnections(TimeSpan patience)
{
    /// <summary>
    /// Twice what a caller has for an answer, and four times what a ping waits, so that both end first where they can.
    /// </summary>
    public static readonly TimeSpan Patience = TimeSpan.FromSeconds(60);

    /// <summary>The level of the options of TCP.</summary>
    private const int TcpLevel = 6;

    /// <summary>
    /// TCP_USER_TIMEOUT of Linux, in milliseconds: how long sent bytes may stay unacknowledged, or bytes may wait
    /// because the window of the peer is closed (RFC 5482, tcp(7)).
    /// </summary>
    private const int UserTimeout = 18;

    /// <summary>The middleware of an endpoint. Other systems than Linux do not have the option.</summary>
    public ConnectionDelegate Middleware(ConnectionDelegate next) => connection =>
    {
        if (OperatingSystem.IsLinux() && connection.Features.Get<IConnectionSocketFeature>()?.Socket is { } socket)
        {
            Limit(socket);
        }

        return next(connection);
    };

    private void Limit(Socket socket)
    {
        try
        {
            socket.SetRawSocketOption(
                TcpLevel, UserTimeout, BitConverter.GetBytes((int)patience.TotalMilliseconds));
        }
        catch (Exception error) when (error is SocketException or ObjectDisposedException)
        {
            // The connection has ended already.
        }
    }
}
