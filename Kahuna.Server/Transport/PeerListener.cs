using System.Net;
using System.Net.Sockets;
using System.Threading.Channels;
using Kahuna.Wire.Sockets;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets;

namespace Kahuna.Server.Transport;

/// <summary>Callbacks of a listener. Immutable; called from any thread, must not block.</summary>
/// <param name="TakePeer">Takes over a connection whose ClientHello is a node's.</param>
/// <param name="Trouble">Receives the reason why a connection could not be accepted; limits the rate of log lines
/// itself.</param>
/// <param name="Failed">The listener ended although it was not closed; the node must stop.</param>
internal sealed record ListenerCallbacks(Action<Socket> TakePeer, Action<string> Trouble, Action<Exception> Failed)
{
    /// <summary>Takes over a direct link of a client, and its place; null: this node has none.</summary>
    public Action<Socket, AddressSlot?>? TakeLink { get; init; }
}

/// <summary>What a listener refuses. Immutable.</summary>
/// <param name="Descriptors">The descriptors of the process.</param>
/// <param name="Addresses">The connections of each address; those of nodes that link have a limit of their own
/// (<see cref="PeerLinksOptions.UnprovenMax"/>).</param>
internal sealed record ListenerLimits(DescriptorLimit Descriptors, AddressLimiter Addresses);

/// <summary>
/// One listening socket. Peeks at the first bytes of each connection: nodes go to the links, all others to Kestrel. No
/// connection ends the accept loop: an unexpected exception is reported and costs only its connection. If the loop ends
/// anyway, its owner is notified, because a node that accepts no connection must stop. Owned by Kestrel, which requests
/// connections one after the other.
/// </summary>
internal sealed class PeerListener : IConnectionListener
{
    /// <summary>A node's ClientHello is a few hundred bytes; the wanted extension is in its first part.</summary>
    private const int PeekBytes = 4096;

    /// <summary>
    /// Interval at which to peek again at a ClientHello that arrives in pieces, at most <see cref="LooksMax"/> times.
    /// Then Kestrel takes it.
    /// </summary>
    private static readonly TimeSpan s_lookAgain = TimeSpan.FromMilliseconds(5);
    private const int LooksMax = 100;

    /// <summary>
    /// Most incomplete ClientHellos to wait for at a time; Kestrel takes further ones. A node's ClientHello arrives in
    /// one piece, so nodes are not affected.
    /// </summary>
    private const int LookingMax = 256;

    /// <summary>
    /// Pause after the system had no descriptor or memory for a connection, or after an error; connections wait in the
    /// backlog.
    /// </summary>
    private static readonly TimeSpan s_exhaustedWait = TimeSpan.FromMilliseconds(50);

    private readonly Socket _socket;
    private readonly ListenerCallbacks _owner;
    private readonly ListenerLimits _limits;
    private readonly SocketConnectionContextFactory _connections;
    private readonly CancellationTokenSource _unbound = new();

    /// <summary>
    /// Connections for Kestrel: a short queue, so that accepting stops while Kestrel is not taking any.
    /// </summary>
    private readonly Channel<ConnectionContext> _ready = Channel.CreateBounded<ConnectionContext>(
        new BoundedChannelOptions(16) { SingleReader = true });

    private readonly Task _accepting;
    private int _looking;

    public PeerListener(Socket socket, ListenerCallbacks owner, ListenerLimits limits, ILoggerFactory loggers)
    {
        _socket = socket;
        _owner = owner;
        _limits = limits;
        _connections = new SocketConnectionContextFactory(
            new SocketConnectionFactoryOptions(),
            loggers.CreateLogger("Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets"));
        EndPoint = socket.LocalEndPoint!;
        _accepting = AcceptAllAsync();
    }

    public EndPoint EndPoint { get; }

    public async ValueTask<ConnectionContext?> AcceptAsync(CancellationToken cancellationToken = default)
    {
        while (await _ready.Reader.WaitToReadAsync(cancellationToken).ConfigureAwait(false))
        {
            if (_ready.Reader.TryRead(out ConnectionContext? connection))
            {
                return connection;
            }
        }

        return null;
    }

    public async ValueTask UnbindAsync(CancellationToken cancellationToken = default)
    {
        await _unbound.CancelAsync().ConfigureAwait(false);
        _socket.Dispose();
        await _accepting.ConfigureAwait(false);
    }

    public async ValueTask DisposeAsync()
    {
        await UnbindAsync().ConfigureAwait(false);
        while (_ready.Reader.TryRead(out ConnectionContext? connection))
        {
            await connection.DisposeAsync().ConfigureAwait(false);
        }

        _connections.Dispose();
        _unbound.Dispose();
    }

    private async Task AcceptAllAsync()
    {
        try
        {
            while (!_unbound.IsCancellationRequested)
            {
                await ServeOneAsync().ConfigureAwait(false);
            }
        }
        catch (Exception error)
        {
            if (!_unbound.IsCancellationRequested)
            {
                _owner.Failed(new IOException(
                    $"The listener on {EndPoint} has ended, so this node cannot be reached: {error.Message}", error));
            }
        }
        finally
        {
            _ready.Writer.TryComplete();
        }
    }

    /// <summary>
    /// Accepts one connection and routes it. Throws only when the listener is unbound, or when reporting an error
    /// fails.
    /// </summary>
    private async Task ServeOneAsync()
    {
        Socket? socket = null;
        try
        {
            socket = await AcceptOneAsync().ConfigureAwait(false);
            if (socket is not null)
            {
                await RouteAsync(socket).ConfigureAwait(false);
            }
        }
        catch (Exception error) when (!_unbound.IsCancellationRequested)
        {
            await DropAsync(socket, error).ConfigureAwait(false);
        }
    }

    private async Task DropAsync(Socket? socket, Exception error)
    {
        socket?.Dispose();
        _owner.Trouble($"a connection was dropped on an unexpected error ({error.GetType().Name}: {error.Message})");
        await Task.Delay(s_exhaustedWait, _unbound.Token).ConfigureAwait(false);
    }

    private async Task<Socket?> AcceptOneAsync()
    {
        try
        {
            return await _socket.AcceptAsync(_unbound.Token).ConfigureAwait(false);
        }
        catch (SocketException error) when (!_unbound.IsCancellationRequested)
        {
            // Either the client has disconnected, or the system lacks a resource and an immediate retry would only
            // spin.
            if (error.SocketErrorCode is not (SocketError.ConnectionReset or SocketError.ConnectionAborted))
            {
                _owner.Trouble(error.Message);
                await Task.Delay(s_exhaustedWait, _unbound.Token).ConfigureAwait(false);
            }

            return null;
        }
        catch (SocketException)
        {
            return null;
        }
    }

    private async Task RouteAsync(Socket socket)
    {
        ClientHelloKind kind = Look(socket);
        if (kind == ClientHelloKind.Peer)
        {
            _owner.TakePeer(socket);
        }
        else if (!_limits.Descriptors.Admits(socket.SafeHandle.DangerousGetHandle()))
        {
            _owner.Trouble(
                $"{_limits.Descriptors.Ceiling} of the process's {_limits.Descriptors.Limit} file descriptors are in "
                    + "use, and the rest is reserved for log and links (ulimit -n raises the limit)");
            Refuse(socket);
        }
        else if (!_limits.Addresses.TryEnter((socket.RemoteEndPoint as IPEndPoint)?.Address, out AddressSlot? slot))
        {
            Refuse(socket);
        }
        else if (kind == ClientHelloKind.Link && _owner.TakeLink is { } takeLink)
        {
            takeLink(socket, slot);
        }
        else if (kind == ClientHelloKind.Incomplete && Volatile.Read(ref _looking) < LookingMax)
        {
            // Other connections must not wait for a slow ClientHello.
            Interlocked.Increment(ref _looking);
            _ = LookAgainAsync(socket, slot);
        }
        else
        {
            await GiveToKestrelAsync(socket, slot).ConfigureAwait(false);
        }
    }

    /// <summary>
    /// Refuses a client that would use up the descriptors of the log, the links and the runtime: a process without a
    /// free descriptor cannot continue. Or one whose address has too many connections. The client is reset at once, so
    /// that it can try another node instead of waiting in the backlog.
    /// </summary>
    internal static void Refuse(Socket socket)
    {
        try
        {
            // A linger time of zero makes the close a reset, which leaves no socket behind.
            socket.LingerState = new LingerOption(enable: true, seconds: 0);
        }
        catch (SocketException)
        {
            // The client has disconnected already.
        }

        socket.Dispose();
    }

    private async Task LookAgainAsync(Socket socket, AddressSlot? slot)
    {
        try
        {
            for (int look = 0; look < LooksMax; look++)
            {
                await Task.Delay(s_lookAgain, _unbound.Token).ConfigureAwait(false);
                ClientHelloKind kind = Look(socket);
                if (kind == ClientHelloKind.Peer)
                {
                    slot?.Dispose();
                    _owner.TakePeer(socket);
                    return;
                }

                if (kind == ClientHelloKind.Link && _owner.TakeLink is { } takeLink)
                {
                    takeLink(socket, slot);
                    return;
                }

                if (kind != ClientHelloKind.Incomplete)
                {
                    break;
                }
            }

            await GiveToKestrelAsync(socket, slot).ConfigureAwait(false);
        }
        catch (Exception error)
        {
            socket.Dispose();
            slot?.Dispose();
            if (!_unbound.IsCancellationRequested)
            {
                _owner.Trouble(
                    $"a connection was dropped on an unexpected error ({error.GetType().Name}: {error.Message})");
            }
        }
        finally
        {
            Interlocked.Decrement(ref _looking);
        }
    }

    private async Task GiveToKestrelAsync(Socket socket, AddressSlot? slot)
    {
        ConnectionContext connection;
        try
        {
            socket.NoDelay = true;
            connection = _connections.Create(socket);
            connection.Features.Set<IMemoryPoolFeature>(ConnectionMemory.Instance);
        }
        catch (Exception error)
        {
            socket.Dispose();
            slot?.Dispose();
            if (error is SocketException or ObjectDisposedException)
            {
                // The client has disconnected.
                return;
            }

            throw;
        }

        connection = slot is null ? connection : new CountedConnection(connection, slot);
        try
        {
            await _ready.Writer.WriteAsync(connection, _unbound.Token).ConfigureAwait(false);
        }
        catch (Exception error) when (error is OperationCanceledException or ChannelClosedException)
        {
            await connection.DisposeAsync().ConfigureAwait(false);
        }
    }

    /// <summary>
    /// Peeks at the first bytes. Synchronous: a link's socket must stay in blocking mode (see
    /// <see cref="BlockingSocket"/>).
    /// </summary>
    private static ClientHelloKind Look(Socket socket)
    {
        try
        {
            if (socket.Available == 0)
            {
                // Either nothing has arrived, or the client has closed, which Kestrel will notice.
                return socket.Poll(0, SelectMode.SelectRead) ? ClientHelloKind.Other : ClientHelloKind.Incomplete;
            }

            Span<byte> first = stackalloc byte[PeekBytes];
            int count = socket.Receive(first, SocketFlags.Peek, out SocketError error);
            ClientHelloKind kind = error != SocketError.Success
                ? ClientHelloKind.Other
                : ClientHello.Classify(first[..count]);

            // Waiting does not help when the peeked part is full.
            return kind == ClientHelloKind.Incomplete && count == PeekBytes ? ClientHelloKind.Other : kind;
        }
        catch (SocketException)
        {
            return ClientHelloKind.Other;
        }
    }
}
