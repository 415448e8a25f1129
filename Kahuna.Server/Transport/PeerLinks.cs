using System.Buffers.Binary;
using System.Net.Sockets;
using Kahuna.Client.Wire.Buffers;
using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Transport;

/// <summary>
/// The links of this node to all others: one connection per pair, on the address that clients use too (docs/adr/0006-peer-links.md). The node with
/// the greater id connects. Owned by the node; <see cref="TrySend"/> from any thread.
/// </summary>
internal sealed class PeerLinks : IPeerTransport, IAsyncDisposable
{
    /// <summary>How often the same line is logged at most.</summary>
    public static readonly TimeSpan LogInterval = TimeSpan.FromMinutes(1);

    /// <summary>A thread that is asked to end does so in milliseconds, unless the receiver or the resolver holds it; then the node stops without it.</summary>
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
        _links = [.. options.Peers.Where(peer => peer.Id != options.Self).Select(peer => new PeerLink(peer, receiver, options.Directory, options.FatalErrors, _logger))];
        _dialers = [.. _links.Where(link => link.Id.Value < options.Self.Value).Select(link => new PeerDialer(options, link, tls, _throttle, _logger))];
        _acceptor = new PeerAcceptor(options, _links, tls, _logger);
    }

    /// <summary>Begins to connect. Connections of others are taken from the moment the listener is bound.</summary>
    public void Start()
    {
        foreach (PeerDialer dialer in _dialers)
        {
            dialer.Start();
        }

        _lastTick = _options.Time.GetTimestamp();
        _ticks = _options.Time.CreateTimer(static state => ((PeerLinks)state!).Tick(), this, _options.KeepAliveInterval, _options.KeepAliveInterval);
    }

    /// <summary>Whether there is a proven connection to the peer at this moment.</summary>
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
        InvariantException.Require(payloadBytes is > 0 and <= PeerProtocol.FrameBytesMax, "a frame to a peer has a payload and is not larger than the limit");
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

    /// <summary>Takes over a fresh connection whose TLS greeting names <see cref="PeerProtocol.ApplicationProtocol"/>; nothing has been read from it yet. Never blocks.</summary>
    public void Accept(Socket socket) => _acceptor.Accept(socket);

    /// <summary>Logs that connections cannot be accepted, once a minute at most.</summary>
    public void CannotAccept(string reason)
    {
        if (_throttle.Allows("accept", out long leftOut))
        {
            _logger.CannotAccept(reason, leftOut);
        }
    }

    /// <summary>Closes all links. The receiver hears of each that was up; afterwards it is not called any more.</summary>
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

        // Ends may have to wait for a frame that is being delivered, so not in the caller's thread.
        await Task.Factory.StartNew(EndAll, CancellationToken.None, TaskCreationOptions.LongRunning, TaskScheduler.Default).ConfigureAwait(false);
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
        // Four at most: a search is faster than any table.
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
