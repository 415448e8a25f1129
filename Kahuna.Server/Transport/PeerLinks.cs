using System.Buffers.Binary;
using System.Net.Sockets;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Transport;

/// <summary>
/// This node's links to all others: one connection per pair, on the address that clients use too
/// (docs/adr/0006-peer-links.md). The node with the greater id connects. Owned by the node; <see cref="TrySend"/> from
/// any thread.
/// </summary>
internal sealed class PeerLinks : IPeerTransport, IAsyncDisposable
{
    /// <summary>Shortest interval between equal log lines.</summary>
    public static readonly TimeSpan LogInterval = TimeSpan.FromMinutes(1);

    /// <summary>
    /// Longest wait for a thread at shutdown. It ends within milliseconds unless the receiver or the resolver blocks
    /// it; then the node stops without it.
    /// </summary>
    private static readonly TimeSpan s_joinMax = TimeSpan.FromSeconds(2);

    private readonly PeerLinksOptions _options;
    private readonly ILogger _logger;
    private readonly LogThrottle _throttle;
    private readonly PeerLink[] _links;
    private readonly PeerDialer[] _dialers;
    private readonly PeerAcceptor _acceptor;
    private readonly int _silentTicksMax;
    private ITimer? _ticks;
    private long _lastTick;
    private int _disposed;

    public PeerLinks(PeerLinksOptions options, IPeerReceiver receiver, ILoggerFactory loggers)
    {
        _options = options;
        _logger = loggers.CreateLogger("Kahuna.Transport");
        _throttle = new LogThrottle(options.Time, LogInterval);
        _silentTicksMax = Math.Max(2, (int)Math.Ceiling(options.SilenceMax / options.KeepAliveInterval));
        PeerTls tls = new(options);
        _links =
        [
            .. options.Peers.Where(peer => peer.Id != options.Self)
                .Select(peer => new PeerLink(peer, receiver, options.Directory, options.FatalErrors, _logger)),
        ];
        _dialers =
        [
            .. _links.Where(link => link.Id.Value < options.Self.Value)
                .Select(link => new PeerDialer(options, link, tls, _throttle, _logger)),
        ];
        _acceptor = new PeerAcceptor(options, _links, tls, _logger);
    }

    /// <summary>Starts to connect. Connections of other nodes are accepted as soon as the listener is bound.</summary>
    public void Start()
    {
        foreach (PeerDialer dialer in _dialers)
        {
            dialer.Start();
        }

        _lastTick = _options.Time.GetTimestamp();
        _ticks = _options.Time.CreateTimer(
            static state => ((PeerLinks)state!).Tick(), this, _options.KeepAliveInterval, _options.KeepAliveInterval);
    }

    /// <summary>Whether there is a proven connection to the peer now.</summary>
    public bool IsUp(NodeId peer) => Find(peer)?.Current is not null;

    /// <inheritdoc/>
    public ByteBuffer BeginFrame()
    {
        ByteBuffer frame = ByteBuffer.Rent();
        frame.Length = PeerProtocol.FramePrefixBytes;
        return frame;
    }

    /// <inheritdoc/>
    public bool TrySend(NodeId peer, ByteBuffer frame, bool isUrgent = false)
    {
        int payloadBytes = frame.Length - PeerProtocol.FramePrefixBytes;
        InvariantException.Require(
            payloadBytes is > 0 and <= PeerProtocol.FrameBytesMax,
            "a frame to a peer has a payload and is not larger than the limit");
        if (Find(peer)?.Current is not PeerConnection connection)
        {
            frame.Return();
            return false;
        }

        BinaryPrimitives.WriteUInt32LittleEndian(frame.Array, (uint)payloadBytes);
        bool queued = connection.TrySend(frame, isUrgent, out bool full);
        if (full && _throttle.Allows($"full {peer}"))
        {
            _logger.QueueFull(peer);
        }

        return queued;
    }

    /// <inheritdoc/>
    public bool HasWaiting(NodeId peer) => Find(peer)?.Current is { HasWaiting: true };

    /// <summary>
    /// Takes over a new connection whose ClientHello names <see cref="PeerProtocol.ApplicationProtocol"/>, with nothing
    /// read from it yet. Never blocks.
    /// </summary>
    public void Accept(Socket socket) => _acceptor.Accept(socket);

    /// <summary>Logs that connections cannot be accepted, at most once a minute.</summary>
    public void CannotAccept(string reason)
    {
        if (_throttle.Allows("accept", out long leftOut))
        {
            _logger.CannotAccept(reason, leftOut);
        }
    }

    /// <summary>Closes all links. The receiver is notified of each that was up, and is not called afterwards.</summary>
    public async ValueTask DisposeAsync()
    {
        if (Interlocked.Exchange(ref _disposed, 1) != 0)
        {
            return;
        }

        if (_ticks is not null)
        {
            await _ticks.DisposeAsync().ConfigureAwait(false);
        }

        _acceptor.Stop();
        foreach (PeerDialer dialer in _dialers)
        {
            dialer.Stop();
        }

        // Ending a link may wait for a frame that is being delivered, so it must not run in the caller's thread.
        await Task.Factory
            .StartNew(EndAll, CancellationToken.None, TaskCreationOptions.LongRunning, TaskScheduler.Default)
            .ConfigureAwait(false);
    }

    private void EndAll()
    {
        foreach (PeerLink link in _links)
        {
            link.End();
        }

        foreach (PeerDialer dialer in _dialers)
        {
            dialer.Join(s_joinMax);
        }

        _acceptor.Join(s_joinMax);
    }

    private PeerLink? Find(NodeId peer)
    {
        // There are four at most: a linear search is faster than a table.
        foreach (PeerLink link in _links)
        {
            if (link.Id == peer)
            {
                return link;
            }
        }

        return null;
    }

    private void Tick()
    {
        long now = _options.Time.GetTimestamp();
        bool wasStopped = _options.Time.GetElapsedTime(_lastTick, now) > _options.KeepAliveInterval * 2;
        _lastTick = now;
        foreach (PeerLink link in _links)
        {
            link.Current?.Tick(_silentTicksMax, wasStopped);
        }
    }
}

/// <summary>
/// One peer and its current connection, if any. Connections come and go in their own threads; the lock makes the
/// receiver see one at a time, in order: up, frames, down. Any thread.
/// </summary>
internal sealed class PeerLink(
    PeerAddress address, IPeerReceiver receiver, IPeerDirectory directory, IFatalErrors fatal, ILogger logger)
{
    /// <summary>Held while a frame is delivered, so that the next connection's frames cannot overtake it.</summary>
    private readonly Lock _delivery = new();

    private volatile PeerConnection? _current;
    private bool _ended;

    public NodeId Id => address.Id;

    public Uri Address => address.Address;

    public PeerConnection? Current => _current;

    /// <summary>
    /// Makes a proven connection the peer's current one, replacing an older one, and runs it to its end in the calling
    /// thread.
    /// </summary>
    public void Run(PeerConnection connection)
    {
        // The older one may be blocked or dead: the peer would not have reconnected if it still used it.
        _current?.Close("the peer has connected anew");
        lock (_delivery)
        {
            if (_ended)
            {
                connection.Close("this node stops");
            }
            else
            {
                Drop(_current);
                if (directory.Linked(Id, connection.DirectoryId))
                {
                    _current = connection;
                    logger.Up(Id, connection.Remote);
                    NotifyReceiver(up: true);
                }
                else
                {
                    connection.Close("the peer has come back with another data directory");
                }
            }
        }

        try
        {
            connection.Run(payload => Deliver(connection, payload));
        }
        finally
        {
            lock (_delivery)
            {
                Drop(_current == connection ? connection : null);
            }
        }
    }

    /// <summary>Closes the connection and refuses later ones.</summary>
    public void End()
    {
        _current?.Close("this node stops");
        lock (_delivery)
        {
            _ended = true;
        }

        // A new one may have begun in between.
        _current?.Close("this node stops");
    }

    private bool Deliver(PeerConnection connection, ReadOnlySpan<byte> payload)
    {
        lock (_delivery)
        {
            if (_current != connection)
            {
                return false;
            }

            try
            {
                receiver.Receive(Id, payload);
                return true;
            }
            catch (Exception error)
            {
                // The receiver is the node itself: the state after its exception is unknown.
                fatal.Raise($"taking in a frame of node {Id}", error);
                connection.Close("the receiver failed");
                return false;
            }
        }
    }

    private void Drop(PeerConnection? connection)
    {
        if (connection is not null)
        {
            _current = null;
            connection.Close("the peer closed it");
            logger.Down(Id, connection.Reason);
            NotifyReceiver(up: false);
        }
    }

    private void NotifyReceiver(bool up)
    {
        try
        {
            receiver.LinkChanged(Id, up);
        }
        catch (Exception error)
        {
            fatal.Raise($"taking in a change of the link to node {Id}", error);
        }
    }
}
