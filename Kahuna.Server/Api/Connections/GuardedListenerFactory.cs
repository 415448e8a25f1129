using System.Net;
using System.Net.Sockets;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets;
using Microsoft.Extensions.Options;

namespace Kahuna.Server.Api.Connections;

/// <summary>
/// Makes the listeners of the endpoint. Kestrel's own accept without regard to the descriptors that are left, and a process
/// that has none left cannot open a log segment, reach a peer or go on at all. Used by Kestrel at start-up.
/// </summary>
internal sealed class GuardedListenerFactory(IOptions<SocketTransportOptions> options, ILoggerFactory loggers) : IConnectionListenerFactory
{
    private readonly ILogger _logger = loggers.CreateLogger<GuardedListener>();

    /// <inheritdoc/>
    public ValueTask<IConnectionListener> BindAsync(EndPoint endpoint, CancellationToken cancellationToken = default)
    {
        SocketTransportOptions transport = options.Value;
        Socket socket = transport.CreateBoundListenSocket(endpoint);
        try
        {
            socket.Listen(transport.Backlog);
        }
        catch (SocketException e)
        {
            socket.Dispose();
            throw e.SocketErrorCode == SocketError.AddressAlreadyInUse ? new AddressInUseException(e.Message, e) : e;
        }

        SocketConnectionContextFactory contexts = new(
            new SocketConnectionFactoryOptions(transport),
            loggers.CreateLogger("Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets"));
        return new ValueTask<IConnectionListener>(new GuardedListener(socket, contexts, DescriptorLimit.OfThisProcess(), _logger));
    }
}
