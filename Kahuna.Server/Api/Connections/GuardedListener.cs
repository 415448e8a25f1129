using System.Net;
using System.Net.Sockets;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets;

namespace Kahuna.Server.Api.Connections;

/// <summary>
/// Accepts connections as long as there are descriptors to spare. One past the limit is closed at once, so that its caller
/// knows and can turn to another node, instead of waiting in the backlog. Owned by Kestrel: one accept at a time.
/// </summary>
internal sealed partial class GuardedListener(Socket listener, SocketConnectionContextFactory contexts, DescriptorLimit limit, ILogger logger) : IConnectionListener
{
    /// <summary>When the system has no descriptor to give, asking again at once would only burn the processor.</summary>
    private static readonly TimeSpan s_pause = TimeSpan.FromMilliseconds(100);

    private static readonly TimeSpan s_logInterval = TimeSpan.FromSeconds(10);

    private readonly CancellationTokenSource _unbound = new();
    private long _refused;
    private long _loggedAt = Environment.TickCount64 - (long)s_logInterval.TotalMilliseconds;

    /// <inheritdoc/>
    public EndPoint EndPoint => listener.LocalEndPoint!;

    /// <inheritdoc/>
    public async ValueTask<ConnectionContext?> AcceptAsync(CancellationToken cancellationToken = default)
    {
        while (true)
        {
            try
            {
                Socket accepted = await listener.AcceptAsync(cancellationToken);
                if (limit.Admits(accepted.Handle))
                {
                    return Begin(accepted);
                }

                Refuse(accepted);
            }
            catch (ObjectDisposedException)
            {
                return null;
            }
            catch (SocketException e) when (e.SocketErrorCode == SocketError.OperationAborted)
            {
                return null;
            }
            catch (SocketException e) when (e.SocketErrorCode is SocketError.TooManyOpenSockets or SocketError.NoBufferSpaceAvailable)
            {
                Report();
                if (!await PauseAsync(cancellationToken))
                {
                    return null;
                }
            }
            catch (SocketException)
            {
                // The connection was gone before it was accepted; the next one may not be.
            }
        }
    }

    /// <inheritdoc/>
    public ValueTask UnbindAsync(CancellationToken cancellationToken = default)
    {
        _unbound.Cancel();
        listener.Dispose();
        return ValueTask.CompletedTask;
    }

    /// <inheritdoc/>
    public ValueTask DisposeAsync()
    {
        _unbound.Cancel();
        listener.Dispose();
        contexts.Dispose();
        return ValueTask.CompletedTask;
    }

    private ConnectionContext? Begin(Socket accepted)
    {
        if (accepted.LocalEndPoint is IPEndPoint)
        {
            accepted.NoDelay = true;
        }

        return contexts.Create(accepted);
    }

    private void Refuse(Socket accepted)
    {
        // Lingering for no time makes the close a reset, which the caller sees at once and which leaves nothing behind here.
        accepted.LingerState = new LingerOption(enable: true, seconds: 0);
        accepted.Dispose();
        Report();
    }

    private async ValueTask<bool> PauseAsync(CancellationToken cancellationToken)
    {
        using CancellationTokenSource either = CancellationTokenSource.CreateLinkedTokenSource(_unbound.Token, cancellationToken);
        await Task.Delay(s_pause, either.Token).ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
        return !either.IsCancellationRequested;
    }

    private void Report()
    {
        _refused++;
        if (Environment.TickCount64 - _loggedAt >= s_logInterval.TotalMilliseconds)
        {
            _loggedAt = Environment.TickCount64;
            ConnectionsRefused(logger, _refused, limit.Ceiling, limit.Limit);
        }
    }

    [LoggerMessage(EventId = 7010, Level = LogLevel.Warning, Message = "Connections are refused ({Refused} so far): the process uses {Ceiling} of its {Limit} file descriptors, and the rest is kept for the log and the peers. Raise the limit (ulimit -n) if the callers are welcome.")]
    private static partial void ConnectionsRefused(ILogger logger, long refused, long ceiling, long limit);
}
