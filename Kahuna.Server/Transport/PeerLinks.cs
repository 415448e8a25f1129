using System.Buffers.Binary;
using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Sockets;

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

    /// <summary>A throttle of its own: its keys are strangers' addresses.</summary>
    private readonly LogThrottle _crowded;

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
        _crowded = new LogThrottle(options.Time, LogInterval, keysMax: 16);
        _silentTicksMax = Math.Max(2, (int)Math.Ceiling(options.SilenceMax / options.KeepAliveInterval));
        PeerTls tls = new(options, _throttle, _logger);
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

    /// <summary>Logs that an address has too many connections, at most once a minute for each.</summary>
    public void Crowded(IPAddress address)
    {
        if (_crowded.Allows(address.ToString(), out long leftOut))
        {
            _logger.Crowded(address, leftOut);
        }
    }

    /// <summary>Whether a node is there whose link is up, so that it has proven itself.</summary>
    public bool IsNodeAt(IPAddress address)
    {
        foreach (PeerLink link in _links)
        {
            if (link.Current?.Remote is IPEndPoint { Address: { } remote }
                && (remote.IsIPv4MappedToIPv6 ? remote.MapToIPv4() : remote).Equals(address))
            {
                return true;
            }
        }

        return false;
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

/// <summary>Receives complete frames. The payload is valid during the call only. False ends the reading.</summary>
internal delegate bool FrameSink(ReadOnlySpan<byte> payload);

/// <summary>
/// One proven connection to a peer. The thread that calls <see cref="Run"/> reads: it cuts the link's bytes into frames
/// and delivers them in place. A <see cref="PeerWriter"/> sends. Owned by the reading thread; <see cref="TrySend"/> and
/// <see cref="Close"/> from any thread.
/// </summary>
internal sealed class PeerConnection
{
    private const int ReceiveBytes = 128 * 1024;

    /// <summary>Fewest free bytes for a read: the size of a TLS record.</summary>
    private const int ReadBytesMin = 16 * 1024;

    private readonly PeerLinksOptions _options;
    private readonly BlockingSocket _socket;
    private readonly SslStream _tls;
    private readonly PeerWriter _writer;
    private volatile bool _heard;
    private volatile bool _delivering;
    private string? _reason;
    private int _silentTicks;

    public PeerConnection(PeerLinksOptions options, ProvenPeer peer, BlockingSocket socket, SslStream tls)
    {
        _options = options;
        _socket = socket;
        _tls = tls;
        _writer = new PeerWriter(options, socket, tls, Close);
        Peer = peer.Id;
        DirectoryId = peer.DirectoryId;
    }

    public NodeId Peer { get; }

    /// <summary>The peer's data directory.</summary>
    public ulong DirectoryId { get; }

    public EndPoint? Remote => _socket.RemoteEndPoint;

    /// <summary>Why the connection ended.</summary>
    public string Reason => Volatile.Read(ref _reason) ?? "it is still open";

    /// <summary>
    /// Queues a frame with its prefix, and takes over its buffer in any case. False when it was dropped;
    /// <paramref name="full"/> when the queue has just become full.
    /// </summary>
    public bool TrySend(ByteBuffer frame, bool isUrgent, out bool full) => _writer.TrySend(frame, isUrgent, out full);

    /// <summary>Frames wait to be written. Any thread.</summary>
    public bool HasWaiting => _writer.HasWaiting;

    /// <summary>
    /// Reads and delivers frames until the connection ends, then releases everything. Called once, by the owning
    /// thread.
    /// </summary>
    public void Run(FrameSink sink)
    {
        _socket.Spin = _options.ReadSpin;
        _writer.Start($"peer {Peer} writer");
        try
        {
            ReadFrames(sink);
            Close("the peer closed it");
        }
        catch (Exception error) when (error is IOException or ObjectDisposedException)
        {
            Close(error.Message);
        }
        finally
        {
            Close("it failed");
            _writer.Join();
            _tls.Dispose();
        }
    }

    /// <summary>Ends the connection; <see cref="Run"/> returns soon after. The first reason is kept.</summary>
    public void Close(string reason)
    {
        if (Interlocked.CompareExchange(ref _reason, reason, null) is null)
        {
            _writer.Close();
            _socket.Close();
        }
    }

    /// <summary>
    /// Called at regular intervals by one thread. Sends a keep-alive frame if nothing else was sent, and closes the
    /// connection when nothing was received in <paramref name="silentTicksMax"/> intervals. <paramref name="grace"/>:
    /// this process itself was paused, so silence proves nothing.
    /// </summary>
    public void Tick(int silentTicksMax, bool grace)
    {
        if (TakeActivity() || grace)
        {
            _silentTicks = 0;
        }
        else if (++_silentTicks >= silentTicksMax)
        {
            Close($"nothing was heard for {_options.SilenceMax.TotalSeconds:0.#} s");
            return;
        }

        if (!_writer.TakeActivity())
        {
            ByteBuffer frame = ByteBuffer.Rent(PeerProtocol.FramePrefixBytes);
            frame.Take(PeerProtocol.FramePrefixBytes).Clear();
            TrySend(frame, isUrgent: true, out _);
        }
    }

    /// <summary>Whether bytes arrived since the last call, or the receiver is still processing a frame.</summary>
    private bool TakeActivity()
    {
        bool active = _heard || _delivering;
        _heard = false;
        return active;
    }

    /// <summary>Reads until the stream ends or the sink returns false.</summary>
    /// <exception cref="IOException">The stream failed, or the peer violated the protocol.</exception>
    private void ReadFrames(FrameSink sink)
    {
        byte[] buffer = BufferArrays.Rent(ReceiveBytes);
        try
        {
            int start = 0;
            int end = 0;
            while (true)
            {
                int count = _tls.Read(buffer, end, buffer.Length - end);
                if (count == 0)
                {
                    return;
                }

                _heard = true;
                end += count;
                if (!Deliver(sink, buffer.AsSpan(0, end), ref start, out int missing))
                {
                    return;
                }

                MakeRoom(ref buffer, ref start, ref end, missing);
            }
        }
        finally
        {
            BufferArrays.Return(buffer);
        }
    }

    /// <summary>Delivers every complete frame. <paramref name="missing"/>: whole size of the incomplete one.</summary>
    private bool Deliver(FrameSink sink, ReadOnlySpan<byte> received, ref int start, out int missing)
    {
        missing = 0;
        while (received.Length - start >= PeerProtocol.FramePrefixBytes)
        {
            uint length = BinaryPrimitives.ReadUInt32LittleEndian(received[start..]);
            if (length > PeerProtocol.FrameBytesMax)
            {
                throw new IOException($"it sent a frame of {length} bytes; {PeerProtocol.FrameBytesMax} are allowed");
            }

            int whole = PeerProtocol.FramePrefixBytes + (int)length;
            if (received.Length - start < whole)
            {
                missing = whole;
                return true;
            }

            if (length > 0)
            {
                _delivering = true;
                bool goOn = sink(received.Slice(start + PeerProtocol.FramePrefixBytes, (int)length));
                _delivering = false;
                if (!goOn)
                {
                    return false;
                }
            }

            start += whole;
        }

        return true;
    }

    private static void MakeRoom(ref byte[] buffer, ref int start, ref int end, int missing)
    {
        int rest = end - start;
        int wanted = Math.Max(missing, ReceiveBytes);
        if (wanted > buffer.Length || (buffer.Length > 2 * ReceiveBytes && wanted <= ReceiveBytes))
        {
            // Grows for one large frame, and shrinks to the usual size after it.
            byte[] other = BufferArrays.Rent(wanted);
            buffer.AsSpan(start, rest).CopyTo(other);
            BufferArrays.Return(buffer);
            buffer = other;
        }
        else if (rest > 0 && (start + missing > buffer.Length || buffer.Length - end < ReadBytesMin))
        {
            buffer.AsSpan(start, rest).CopyTo(buffer);
        }
        else if (rest > 0)
        {
            return;
        }

        start = 0;
        end = rest;
    }
}
