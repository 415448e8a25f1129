using System.Net.Security;
using System.Net.Sockets;
using System.Security.Cryptography;
using System.Text;
using Kahuna.Wire.Sockets;

namespace Kahuna.Server.Transport;

/// <summary>
/// Direct links of clients (docs/adr/0054-direct-links.md): each has a thread of its own, so there are few. A stream
/// gets a ticket, and the connection that shows it carries the stream's frames. Owned by the node; any thread.
/// </summary>
/// <param name="tls">The node's certificate.</param>
/// <param name="linksMax">Links and tickets at a time; 0: none.</param>
/// <param name="logger">Hears of links that failed.</param>
internal sealed class DirectLinks(TlsSource tls, int linksMax, ILogger logger)
{
    /// <summary>After this time without an acknowledgement the kernel closes a connection.</summary>
    private static readonly TimeSpan s_silence = TimeSpan.FromSeconds(30);

    private readonly Lock _lock = new();
    private readonly Dictionary<string, Action<DirectConnection>> _offered = new(StringComparer.Ordinal);
    private readonly HashSet<BlockingSocket> _unproven = [];
    private int _open;
    private bool _isStopped;

    /// <summary>Links that carry a stream.</summary>
    public int Open => Volatile.Read(ref _open);

    /// <summary>Offers a stream a link.</summary>
    /// <param name="run">Serves the stream over a link, until one of them ends; nobody uses the link afterwards. Called
    /// once at most, on the link's own thread.</param>
    /// <returns>The ticket, for the client; null when there is no place.</returns>
    public string? Offer(Action<DirectConnection> run)
    {
        string ticket = RandomNumberGenerator.GetHexString(DirectLinkProtocol.TicketChars);
        lock (_lock)
        {
            return !_isStopped && DirectLinkProtocol.IsSupported && _offered.Count + _open < linksMax
                && _offered.TryAdd(ticket, run) ? ticket : null;
        }
    }

    /// <summary>The stream needs no link any longer.</summary>
    public void Withdraw(string ticket)
    {
        lock (_lock)
        {
            _offered.Remove(ticket);
        }
    }

    /// <summary>
    /// Takes over a fresh connection, if a ticket may come on it, and its place among those of its address. Never
    /// blocks.
    /// </summary>
    public void Accept(Socket fresh, AddressSlot? slot)
    {
        BlockingSocket? socket = null;
        try
        {
            lock (_lock)
            {
                // Strangers cannot have more threads than there are tickets that somebody is to show.
                if (!_isStopped && _unproven.Count < _offered.Count)
                {
                    BlockingSocket.LimitSilence(fresh, s_silence);
                    socket = new BlockingSocket(fresh);
                    _unproven.Add(socket);
                }
            }

            if (socket is not null)
            {
                new Thread(() => Run(socket, slot)) { IsBackground = true, Name = "client link" }.UnsafeStart();
                return;
            }
        }
        catch (Exception error) when (error is SocketException or OutOfMemoryException or ThreadStartException)
        {
            // The client has gone, or the system has no thread left: the client uses the connection that it has.
            Forget(socket);
        }

        PeerListener.Refuse(fresh);
        slot?.Dispose();
    }

    /// <summary>
    /// Offers no more links and closes connections that carry no stream; streams end with their calls.
    /// </summary>
    public void Stop()
    {
        lock (_lock)
        {
            _isStopped = true;
            _offered.Clear();
            foreach (BlockingSocket socket in _unproven)
            {
                socket.Close();
            }
        }
    }

    private void Run(BlockingSocket socket, AddressSlot? slot)
    {
        using AddressSlot? place = slot;
        using SslStream connection = new(socket, leaveInnerStreamOpen: false);
        try
        {
            if (Prove(socket, connection) is not { } run)
            {
                return;
            }

            try
            {
                connection.WriteByte(DirectLinkProtocol.Taken);
                socket.PushBytes = int.MaxValue;
                run(new DirectConnection(socket, connection));
            }
            finally
            {
                Interlocked.Decrement(ref _open);
            }
        }
        catch (Exception error)
        {
            // A stranger's bytes may cause any exception; it ends only that connection.
            logger.DirectLinkFailed((error.InnerException ?? error).Message);
        }
        finally
        {
            Forget(socket);
        }
    }

    /// <summary>The stream whose ticket is shown; null: it is nobody's.</summary>
    private Action<DirectConnection>? Prove(BlockingSocket socket, SslStream connection)
    {
        using Timer deadline = new(
            static state => ((BlockingSocket)state!).Close(), socket, DirectLinkProtocol.OpenTimeout,
            Timeout.InfiniteTimeSpan);
        connection.AuthenticateAsServer(new SslServerAuthenticationOptions
        {
            ServerCertificateContext = tls.Current.Certificate,
            ApplicationProtocols = [DirectLinkProtocol.ApplicationProtocol],
            AllowRenegotiation = false,
        });
        Span<byte> ticket = stackalloc byte[DirectLinkProtocol.TicketChars];
        connection.ReadExactly(ticket);
        lock (_lock)
        {
            _unproven.Remove(socket);
            if (!_offered.Remove(Encoding.ASCII.GetString(ticket), out Action<DirectConnection>? run))
            {
                return null;
            }

            _open++;
            return run;
        }
    }

    private void Forget(BlockingSocket? socket)
    {
        lock (_lock)
        {
            if (socket is not null)
            {
                _unproven.Remove(socket);
            }
        }
    }
}
