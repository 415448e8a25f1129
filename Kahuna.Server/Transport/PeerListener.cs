using System.Net;
using System.Net.Sockets;
using System.Threading.Channels;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets;

namespace Kahuna.Server.Transport;

/// <summary>
/// One listening socket. Looks at the first bytes of each connection without taking them: nodes go to the links, all others to Kestrel.
/// Owned by Kestrel, which asks for connections one after the other. No connection ends the accept loop: an exception that is not expected is reported
/// and costs its connection only. Should the loop end all the same, its owner hears of it, since a node that accepts nobody must not go on.
/// </summary>
internal sealed class PeerListener : IConnectionListener
{
    /// <summary>A node's greeting is a few hundred bytes; the extension that is looked for stands in its first part.</summary>
    private const int PeekBytes = 4096;

    /// <summary>For a greeting that comes in pieces: how often and for how long to look again. Then Kestrel judges.</summary>
    private static readonly TimeSpan s_lookAgain = TimeSpan.FromMilliseconds(5);
    private const int LooksMax = 100;

    /// <summary>
    /// Greetings in pieces that are waited for at a time; Kestrel judges the ones beyond. A node's greeting comes in one piece, so only strangers lose.
    /// </summary>
    private const int LookingMax = 256;

    /// <summary>Wait after the system had no descriptor or memory for a connection, or after an error; connections wait in the backlog.</summary>
    private static readonly TimeSpan s_exhaustedWait = TimeSpan.FromMilliseconds(50);

    private readonly Socket _socket;
    private readonly ListenerOwner _owner;
    private readonly DescriptorLimit _descriptors;
    private readonly SocketConnectionContextFactory _connections;
    private readonly CancellationTokenSource _unbound = new();

    /// <summary>Connections for Kestrel; so few that accepting stops while Kestrel does not take them.</summary>
    private readonly Channel<ConnectionContext> _ready = Channel.CreateBounded<ConnectionContext>(new BoundedChannelOptions(16) { SingleReader = true });

    private readonly Task _accepting;
    private int _looking;

    public PeerListener(Socket socket, ListenerOwner owner, DescriptorLimit descriptors, ILoggerFactory loggers)
    {
        _socket = socket;
        _owner = owner;
        _descriptors = descriptors;
        _connections = new SocketConnectionContextFactory(new SocketConnectionFactoryOptions(), loggers.CreateLogger("Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets"));
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
                _owner.Failed(new IOException($"The listener on {EndPoint} has ended, so this node can be reached by nobody: {error.Message}", error));
            }
        }
        finally
        {
            _ready.Writer.TryComplete();
        }
    }

    /// <summary>Accepts one connection and passes it on. Throws only when the listener is unbound, or when even reporting an error fails.</summary>
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
            // Either the client is gone again, or the system is out of something, and trying at once would only spin.
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
        switch (Look(socket))
        {
            case ClientHelloKind.Peer:
                _owner.TakePeer(socket);
                break;
            case var _ when !_descriptors.Admits(socket.SafeHandle.DangerousGetHandle()):
                Refuse(socket);
                break;
            case ClientHelloKind.Other:
                await GiveToKestrelAsync(socket).ConfigureAwait(false);
                break;
            case var _ when Volatile.Read(ref _looking) >= LookingMax:
                await GiveToKestrelAsync(socket).ConfigureAwait(false);
                break;
            default:
                // Others must not wait behind a slow greeting.
                Interlocked.Increment(ref _looking);
                _ = LookAgainAsync(socket);
                break;
        }
    }

    /// <summary>
    /// Turns a client away that would use up what the log, the links and the runtime need: a process without a free descriptor cannot go on. It is
    /// told at once, so that it can turn to another node, instead of waiting in the backlog.
    /// </summary>
    private void Refuse(Socket socket)
    {
        _owner.Trouble($"{_descriptors.Ceiling} of the process's {_descriptors.Limit} file descriptors are in use, and the rest is kept for log and links (ulimit -n raises the limit)");
        try
        {
            // Lingering for no time makes the close a reset, which leaves nothing behind here.
            socket.LingerState = new LingerOption(enable: true, seconds: 0);
        }
        catch (SocketException)
        {
            // The client is gone already.
        }

        socket.Dispose();
    }

    private async Task LookAgainAsync(Socket socket)
    {
        try
        {
            for (int look = 0; look < LooksMax; look++)
            {
                await Task.Delay(s_lookAgain, _unbound.Token).ConfigureAwait(false);
                ClientHelloKind kind = Look(socket);
                if (kind == ClientHelloKind.Peer)
                {
                    _owner.TakePeer(socket);
                    return;
                }

                if (kind == ClientHelloKind.Other)
                {
                    break;
                }
            }

            await GiveToKestrelAsync(socket).ConfigureAwait(false);
        }
        catch (Exception error)
        {
            socket.Dispose();
            if (!_unbound.IsCancellationRequested)
            {
                _owner.Trouble($"a connection was dropped on an unexpected error ({error.GetType().Name}: {error.Message})");
            }
        }
        finally
        {
            Interlocked.Decrement(ref _looking);
        }
    }

    private async Task GiveToKestrelAsync(Socket socket)
    {
        ConnectionContext connection;
        try
        {
            socket.NoDelay = true;
            connection = _connections.Create(socket);
        }
        catch (Exception error) when (error is SocketException or ObjectDisposedException)
        {
            // The client is gone again.
            socket.Dispose();
            return;
        }

        try
        {
            await _ready.Writer.WriteAsync(connection, _unbound.Token).ConfigureAwait(false);
        }
        catch (Exception error) when (error is OperationCanceledException or ChannelClosedException)
        {
            await connection.DisposeAsync().ConfigureAwait(false);
        }
    }

    /// <summary>Synchronous on purpose: a link's socket must stay in blocking mode (see <see cref="PeerSocket"/>).</summary>
    private static ClientHelloKind Look(Socket socket)
    {
        try
        {
            if (socket.Available == 0)
            {
                // Either nothing came yet, or the client closed already, which Kestrel will see.
                return socket.Poll(0, SelectMode.SelectRead) ? ClientHelloKind.Other : ClientHelloKind.Incomplete;
            }

            Span<byte> first = stackalloc byte[PeekBytes];
            int count = socket.Receive(first, SocketFlags.Peek, out SocketError error);
            ClientHelloKind kind = error != SocketError.Success ? ClientHelloKind.Other : ClientHello.Classify(first[..count]);

            // What is longer than all that is looked at does not become clearer by waiting.
            return kind == ClientHelloKind.Incomplete && count == PeekBytes ? ClientHelloKind.Other : kind;
        }
        catch (SocketException)
        {
            return ClientHelloKind.Other;
        }
    }
}
