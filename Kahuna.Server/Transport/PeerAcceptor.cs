using System.Net;
using System.Net.Sockets;
using Kahuna.Wire.Sockets;

namespace Kahuna.Server.Transport;

/// <summary>
/// Accepts connections that claim to come from nodes: authenticates each one, then runs it. One thread per connection,
/// which is also its reader; the number of unproven connections is bounded. Any thread.
/// </summary>
internal sealed class PeerAcceptor(PeerLinksOptions options, PeerLink[] links, PeerTls tls, ILogger logger)
{
    private readonly Lock _gate = new();

    /// <summary>Unproven connections, the oldest first.</summary>
    private readonly List<BlockingSocket> _unproven = [];

    private readonly HashSet<Thread> _threads = [];
    private bool _stopping;

    /// <summary>
    /// A throttle of its own: its keys contain strangers' addresses, which must not displace the links' messages.
    /// </summary>
    private readonly LogThrottle _throttle = new(options.Time, PeerLinks.LogInterval, keysMax: 16);

    /// <summary>Takes over a fresh socket.</summary>
    public void Accept(Socket fresh)
    {
        BlockingSocket socket;
        try
        {
            BlockingSocket.LimitSilence(fresh, options.SilenceMax);
            socket = new BlockingSocket(fresh);
        }
        catch (SocketException)
        {
            // The client has disconnected.
            fresh.Dispose();
            return;
        }

        Thread thread = new(() => Run(socket)) { IsBackground = true, Name = "peer link" };
        lock (_gate)
        {
            if (_stopping)
            {
                socket.Dispose();
                return;
            }

            if (_unproven.Count >= options.UnprovenMax)
            {
                // A node proves itself within milliseconds, so the oldest connection is the least likely to be one.
                _unproven[0].Close();
                _unproven.RemoveAt(0);
            }

            _unproven.Add(socket);
            _threads.Add(thread);
        }

        try
        {
            thread.Start();
        }
        catch (Exception error) when (error is OutOfMemoryException or ThreadStartException)
        {
            // The system has no thread left; the peer tries again.
            Log(socket, "threads", error.Message);
            Forget(socket, thread);
            socket.Dispose();
        }
    }

    public void Stop()
    {
        lock (_gate)
        {
            _stopping = true;
            _unproven.ForEach(socket => socket.Close());
        }
    }

    public void Join(TimeSpan limit)
    {
        Thread[] threads;
        lock (_gate)
        {
            threads = [.. _threads];
        }

        foreach (Thread thread in threads)
        {
            thread.Join(limit);
        }
    }

    private void Run(BlockingSocket socket)
    {
        try
        {
            PeerConnection connection = Prove(socket);
            links.Single(link => link.Id == connection.Peer).Run(connection);
        }
        catch (PeerHandshakeException refusal)
        {
            Log(socket, refusal.Reason.ToString(), refusal.Message);
        }
        catch (Exception error)
        {
            // A stranger's bytes may cause any exception; it ends only that connection.
            Log(socket, error.GetType().Name, "it did not prove itself: " + (error.InnerException ?? error).Message);
        }
        finally
        {
            Forget(socket, Thread.CurrentThread);
        }
    }

    private void Forget(BlockingSocket socket, Thread thread)
    {
        lock (_gate)
        {
            _unproven.Remove(socket);
            _threads.Remove(thread);
        }
    }

    private PeerConnection Prove(BlockingSocket socket)
    {
        try
        {
            using ITimer deadline = options.Time.CreateTimer(
                static state => ((BlockingSocket)state!).Close(),
                socket,
                options.HandshakeTimeout,
                Timeout.InfiniteTimeSpan);
            return tls.Accept(socket);
        }
        finally
        {
            lock (_gate)
            {
                _unproven.Remove(socket);
            }
        }
    }

    private void Log(BlockingSocket socket, string reason, string message)
    {
        IPAddress? remote = (socket.RemoteEndPoint as IPEndPoint)?.Address;
        if (!Volatile.Read(ref _stopping) && _throttle.Allows($"accept {remote} {reason}", out long leftOut))
        {
            logger.RefusedFrom(remote, message, leftOut);
        }
    }
}
