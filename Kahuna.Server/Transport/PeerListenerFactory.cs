using System.Net;
using System.Net.Sockets;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets;

namespace Kahuna.Server.Transport;

/// <summary>
/// Kestrel's way to its sockets: binds the listening sockets, hands what comes from nodes to the links and everything
/// else to Kestrel. Stateless; owned by the host.
/// </summary>
internal sealed class PeerListenerFactory(ListenerCallbacks owner, AddressLimiter addresses, ILoggerFactory loggers)
    : IConnectionListenerFactory, IConnectionListenerFactorySelector
{
    /// <summary>As Kestrel's own default.</summary>
    private const int Backlog = 512;

    /// <summary>
    /// A connection that sends nothing waits in the kernel for about this long before it costs a descriptor.
    /// </summary>
    private const int DeferAcceptSeconds = 5;

    public bool CanBind(EndPoint endpoint) => endpoint is IPEndPoint;

    public ValueTask<IConnectionListener> BindAsync(EndPoint endpoint, CancellationToken cancellationToken = default)
    {
        Socket socket;
        try
        {
            socket = SocketTransportOptions.CreateDefaultBoundListenSocket(endpoint);
        }
        catch (SocketException error) when (error.SocketErrorCode == SocketError.AddressAlreadyInUse)
        {
            throw new AddressInUseException(error.Message, error);
        }
        catch (SocketException error)
        {
            throw new IOException($"Cannot listen on {endpoint}: {error.Message}", error);
        }

        if (OperatingSystem.IsLinux())
        {
            // IPPROTO_TCP, TCP_DEFER_ACCEPT: a connection is accepted when its first bytes are there, so the greeting
            // can be looked at without waiting.
            socket.SetRawSocketOption(6, 9, BitConverter.GetBytes(DeferAcceptSeconds));
        }

        socket.Listen(Backlog);
        return ValueTask.FromResult<IConnectionListener>(
            new PeerListener(
                socket, owner, new ListenerLimits(DescriptorLimit.OfThisProcess(), addresses), loggers));
    }
}
