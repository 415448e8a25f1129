using System.Net;
using System.Net.Sockets;
using Kahuna.Wire.Sockets;

namespace Kahuna.Server.Transport;

/// <summary>
/// Keeps one peer connected: connects, runs the connection, waits, and reconnects. Owns one thread, which is also the
/// connection's reader.
/// </summary>
internal sealed class PeerDialer(
    PeerLinksOptions options, PeerLink link, PeerTls tls, LogThrottle throttle, ILogger logger)
{
    private readonly ManualResetEventSlim _wake = new();
    private readonly Lock _gate = new();
    private Thread? _thread;
    private Socket? _connecting;
    private BlockingSocket? _proving;
    private volatile bool _stopping;

    /// <summary>
    /// The version that the next attempt offers: one less after each refusal for it, then the highest again.
    /// </summary>
    private ushort _offer = options.Versions.Max;

    public void Start()
    {
        _thread = new Thread(Run) { IsBackground = true, Name = $"peer {link.Id} link" };
        _thread.Start();
    }

    /// <summary>Aborts the current attempt. The thread ends soon after.</summary>
    public void Stop()
    {
        _stopping = true;
        lock (_gate)
        {
            _connecting?.Dispose();
            _proving?.Close();
        }

        _wake.Set();
    }

    public void Join(TimeSpan limit) => _thread?.Join(limit);

    private void Run()
    {
        int failures = 0;
        while (!_stopping)
        {
            try
            {
                PeerConnection connection = Connect();
                failures = 0;
                _offer = options.Versions.Max;
                link.Run(connection);
            }
            catch (PeerHandshakeException refusal)
            {
                // The peer was reached and refused: an operator must change something, so retry slowly.
                failures = int.MaxValue;
                if (refusal is { Reason: PeerRefusal.Version, ByOther: true })
                {
                    _offer = _offer > options.Versions.Min ? (ushort)(_offer - 1) : options.Versions.Max;
                }

                if (!_stopping && throttle.Allows($"dial {link.Id} {refusal.Reason} {refusal.ByOther}"))
                {
                    logger.Refused(link.Id, link.Address, refusal.Message);
                }
            }
            catch (Exception error)
            {
                // Any exception of network, resolver, TLS or the peer's bytes is a failed attempt and must not end the
                // node.
                failures = failures < int.MaxValue ? failures + 1 : failures;
                if (!_stopping && throttle.Allows($"dial {link.Id} {error.GetType()}"))
                {
                    logger.CannotConnect(
                        link.Id,
                        link.Address,
                        error.InnerException is Exception inner ? $"{error.Message} {inner.Message}" : error.Message);
                }
            }

            Wait(failures);
        }
    }

    private PeerConnection Connect()
    {
        BlockingSocket socket = new(ConnectSocket());
        lock (_gate)
        {
            _proving = socket;
            if (_stopping)
            {
                socket.Close();
            }
        }

        try
        {
            using ITimer deadline = options.Time.CreateTimer(
                static state => ((BlockingSocket)state!).Close(),
                socket,
                options.HandshakeTimeout,
                Timeout.InfiniteTimeSpan);
            return tls.Dial(socket, link, _offer);
        }
        finally
        {
            lock (_gate)
            {
                _proving = null;
            }
        }
    }

    private Socket ConnectSocket()
    {
        string host = link.Address.IdnHost;
        IPAddress[] addresses = IPAddress.TryParse(host, out IPAddress? literal)
            ? [literal]
            : Dns.GetHostAddresses(host);
        Exception? failure = null;
        foreach (IPAddress address in addresses)
        {
            Socket socket = new(address.AddressFamily, SocketType.Stream, ProtocolType.Tcp);
            try
            {
                lock (_gate)
                {
                    _connecting = socket;
                    ObjectDisposedException.ThrowIf(_stopping, this);
                }

                // On Linux the send timeout also limits a blocking connect.
                socket.SendTimeout = (int)options.HandshakeTimeout.TotalMilliseconds;
                socket.Connect(address, link.Address.Port);
                socket.SendTimeout = 0;
                BlockingSocket.LimitSilence(socket, options.SilenceMax);
                return socket;
            }
            catch (Exception error) when (error is SocketException or ObjectDisposedException)
            {
                socket.Dispose();
                failure = error;
            }
            finally
            {
                lock (_gate)
                {
                    _connecting = null;
                }
            }
        }

        throw failure ?? new SocketException((int)SocketError.HostNotFound);
    }

    private void Wait(int failures)
    {
        TimeSpan whole = options.ReconnectMin * Math.Pow(2, Math.Min(failures, 20));
        whole = whole < options.ReconnectMax ? whole : options.ReconnectMax;
        using ITimer timer = options.Time.CreateTimer(
            static state => ((ManualResetEventSlim)state!).Set(),
            _wake,
            whole * (0.5 + (0.5 * options.Jitter())),
            Timeout.InfiniteTimeSpan);
        _wake.Wait();
        if (!_stopping)
        {
            _wake.Reset();
        }
    }
}
