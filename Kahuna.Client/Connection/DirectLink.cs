using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Text;
using System.Threading.Tasks.Sources;
using Kahuna.Wire.Sockets;

namespace Kahuna.Client.Connection;

/// <summary>
/// A connection to a node that carries the frames of one stream (docs/adr/0054-direct-links.md). A thread of its own
/// connects, then reads and completes the reads, so that answers take no way over the pool. One reader and one writer
/// at a time; <see cref="Close"/> from any thread. Owned by its <see cref="DirectFrameStream"/>.
/// </summary>
internal sealed class DirectLink : IValueTaskSource<int>, IDisposable
{
    private readonly object _gate = new();
    private readonly TaskCompletionSource<bool> _opened = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private readonly Thread _thread;
    private readonly Uri _endpoint;
    private readonly SslClientAuthenticationOptions _trust;
    private readonly string _ticket;
    private readonly KeepAlive _keepAlive;
    private ManualResetValueTaskSourceCore<int> _core;
    private Socket? _connecting;
    private BlockingSocket? _socket;
    private DirectConnection? _connection;
    private Memory<byte> _buffer;
    private bool _isWanted;
    private bool _isClosed;
    private bool _isOver;
    private int _users = 2;

    private DirectLink(Uri endpoint, SslClientAuthenticationOptions trust, string ticket, KeepAlive keepAlive)
    {
        (_endpoint, _trust, _ticket, _keepAlive) = (endpoint, trust, ticket, keepAlive);
        _thread = new Thread(Run) { IsBackground = true, Name = "kahuna link" };
    }

    /// <summary>Connects to the node that has given the ticket.</summary>
    /// <param name="endpoint">The node.</param>
    /// <param name="trust">Whom to trust, and as whom to connect.</param>
    /// <param name="ticket">What the node gave.</param>
    /// <param name="keepAlive">How long the connection may be idle, and how long bytes may wait for an answer.</param>
    /// <param name="timeout">How long it may take.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <returns>The link; null: there is none, and the stream stays on its call.</returns>
    public static async Task<DirectLink?> TryOpenAsync(
        Uri endpoint,
        SslClientAuthenticationOptions trust,
        string ticket,
        KeepAlive keepAlive,
        TimeSpan timeout,
        CancellationToken ct)
    {
        DirectLink link = new(endpoint, trust, ticket, keepAlive);
        bool isOpen = false;
        try
        {
            link._thread.UnsafeStart();
            using Timer limit = new(
                static state => ((DirectLink)state!).Close(), link, timeout, Timeout.InfiniteTimeSpan);
            using CancellationTokenRegistration ended = ct.UnsafeRegister(
                static state => ((DirectLink)state!).Close(), link);
            isOpen = await link._opened.Task.ConfigureAwait(false);
        }
        catch (Exception error) when (error is OutOfMemoryException or ThreadStartException)
        {
            // The system has no thread left.
            link._users--;
        }

        if (!isOpen)
        {
            link.Dispose();
        }

        return isOpen ? link : null;
    }

    /// <inheritdoc cref="IFrameStream.ReadAsync"/>
    /// <exception cref="IOException">The link is closed or lost.</exception>
    public ValueTask<int> ReadAsync(Memory<byte> buffer)
    {
        lock (_gate)
        {
            if (_isOver)
            {
                throw new IOException("The link was closed.");
            }

            _core.Reset();
            _buffer = buffer;
            _isWanted = true;
            if (Thread.CurrentThread != _thread)
            {
                Monitor.Pulse(_gate);
            }

            return new ValueTask<int>(this, _core.Version);
        }
    }

    /// <inheritdoc cref="IFrameStream.WriteAsync"/>
    /// <exception cref="IOException">The link is closed or lost.</exception>
    public ValueTask WriteAsync(ReadOnlyMemory<byte> messages)
    {
        _connection!.Write(messages.Span);
        Task sent = _connection.FlushAsync();
        return sent.IsCompletedSuccessfully ? default : new ValueTask(sent);
    }

    /// <summary>Ends reads and writes in all threads.</summary>
    public void Close()
    {
        lock (_gate)
        {
            _isClosed = true;
            Monitor.Pulse(_gate);
            if (_socket is not null)
            {
                _socket.Close();
            }
            else
            {
                // Ends a connect that is under way.
                _connecting?.Dispose();
            }
        }

        // Ends the wait for the link, even while the name of the node is still being looked up.
        _opened.TrySetResult(false);
    }

    /// <summary>Closes the link, when nobody writes any longer.</summary>
    public void Dispose()
    {
        Close();
        Leave();
    }

    /// <inheritdoc/>
    int IValueTaskSource<int>.GetResult(short token) => _core.GetResult(token);

    /// <inheritdoc/>
    ValueTaskSourceStatus IValueTaskSource<int>.GetStatus(short token) => _core.GetStatus(token);

    /// <inheritdoc/>
    void IValueTaskSource<int>.OnCompleted(
        Action<object?> continuation, object? state, short token, ValueTaskSourceOnCompletedFlags flags) =>
        _core.OnCompleted(continuation, state, token, flags);

    private void Run()
    {
        bool isOpen = false;
        try
        {
            isOpen = Connect();
        }
        catch (Exception)
        {
            // Whatever it is: the stream stays on its call, which tells of a node that is not there.
        }

        if (_opened.TrySetResult(isOpen) && isOpen)
        {
            Read();
        }

        Leave();
    }

    private bool Connect()
    {
        Socket fresh = new(SocketType.Stream, ProtocolType.Tcp);
        lock (_gate)
        {
            _connecting = fresh;
        }

        fresh.Connect(Dns.GetHostAddresses(_endpoint.IdnHost), _endpoint.Port);
        _keepAlive.ApplyTo(fresh);
        BlockingSocket socket = new(fresh);
        SslStream connection = new(socket, leaveInnerStreamOpen: false);
        lock (_gate)
        {
            (_socket, _connection) = (socket, new DirectConnection(socket, connection));
            if (_isClosed)
            {
                return false;
            }
        }

        _trust.ApplicationProtocols = [DirectLinkProtocol.ApplicationProtocol];
        connection.AuthenticateAsClient(_trust);
        if (connection.NegotiatedApplicationProtocol != DirectLinkProtocol.ApplicationProtocol)
        {
            return false;
        }

        connection.Write(Encoding.ASCII.GetBytes(_ticket));
        bool isTaken = connection.ReadByte() == DirectLinkProtocol.Taken;
        socket.PushBytes = int.MaxValue;
        return isTaken;
    }

    private void Read()
    {
        while (IsReadWanted())
        {
            int count;
            try
            {
                count = _connection!.Read(_buffer.Span);
            }
            catch (Exception error)
            {
                _core.SetException(error);
                continue;
            }

            // Continues here with what was read, and asks for more.
            _core.SetResult(count);
        }
    }

    private bool IsReadWanted()
    {
        lock (_gate)
        {
            while (!_isWanted && !_isClosed)
            {
                Monitor.Wait(_gate);
            }

            _isOver = !_isWanted;
            _isWanted = false;
            return !_isOver;
        }
    }

    /// <summary>The thread and the owner leave; the second one releases everything.</summary>
    private void Leave()
    {
        if (Interlocked.Decrement(ref _users) == 0)
        {
            _connection?.Dispose();
            _connecting?.Dispose();
        }
    }
}

/// <summary>
/// When a connection counts as lost: it is asked after a time without bytes, and closed when what was sent has no
/// answer for another time. Immutable.
/// </summary>
/// <param name="Interval">Time without bytes; from 1 s on.</param>
/// <param name="Timeout">Time without an answer; from 1 s on.</param>
internal readonly record struct KeepAlive(TimeSpan Interval, TimeSpan Timeout)
{
    /// <summary>Sets it for a socket.</summary>
    public void ApplyTo(Socket socket)
    {
        int seconds = (int)Math.Ceiling(Interval.TotalSeconds);
        socket.SetSocketOption(SocketOptionLevel.Socket, SocketOptionName.KeepAlive, true);
        socket.SetSocketOption(SocketOptionLevel.Tcp, SocketOptionName.TcpKeepAliveTime, seconds);
        socket.SetSocketOption(SocketOptionLevel.Tcp, SocketOptionName.TcpKeepAliveInterval, seconds);
        BlockingSocket.LimitSilence(socket, Interval + Timeout);
    }
}
