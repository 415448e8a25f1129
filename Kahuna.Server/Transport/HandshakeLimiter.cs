using Microsoft.AspNetCore.Connections;

namespace Kahuna.Server.Transport;

/// <summary>
/// Limits the concurrent TLS handshakes of clients. Each costs a signature and a thread for about a millisecond, so
/// hundreds at once would delay all calls by a tenth of a second. Further connections wait in arrival order, but only
/// briefly: the limiter smooths bursts and rejects no connection. Any thread.
/// </summary>
/// <param name="holdMax">How long a handshake that waits for its client keeps its slot.</param>
/// <param name="waitMax">How long a connection waits for a slot before it continues without one, so that silent clients
/// cannot block others.</param>
/// <param name="failed">Receives the error of a hello that the platform could not parse; its connection is
/// closed.</param>
internal sealed class HandshakeLimiter(TimeSpan holdMax, TimeSpan waitMax, Action<Exception> failed)
{
    /// <summary>Concurrent handshakes.</summary>
    public const int ConcurrentMax = 4;

    /// <summary>Duration of the costly part of a handshake on a slow machine.</summary>
    private static readonly TimeSpan s_holdMax = TimeSpan.FromMilliseconds(10);

    /// <summary>A fraction of any client's timeout.</summary>
    private static readonly TimeSpan s_waitMax = TimeSpan.FromSeconds(1);

    private readonly SemaphoreSlim _slots = new(ConcurrentMax, ConcurrentMax);

    public HandshakeLimiter(Action<Exception> failed)
        : this(s_holdMax, s_waitMax, failed)
    {
    }

    /// <summary>The middleware before TLS: waits for a slot.</summary>
    public ConnectionDelegate Waiting(ConnectionDelegate next) => async connection =>
    {
        bool hasSlot;
        try
        {
            hasSlot = await _slots.WaitAsync(waitMax, connection.ConnectionClosed).ConfigureAwait(false);
        }
        catch (OperationCanceledException)
        {
            // The client has disconnected.
            return;
        }

        Handshake handshake = new(hasSlot ? _slots : null);
        connection.Features.Set(handshake);
        using Timer? limit = hasSlot
            ? new(static handshake => ((Handshake)handshake!).Leave(), handshake, holdMax, Timeout.InfiniteTimeSpan)
            : null;
        try
        {
            await next(connection).ConfigureAwait(false);
        }
        catch (Exception error) when (
            !handshake.IsDone && error is (IndexOutOfRangeException or ArgumentOutOfRangeException))
        {
            // The platform reads past the end of some hellos. Catch nothing else: an unusable certificate must be
            // noticed.
            failed(error);
        }
        finally
        {
            handshake.Leave();
        }
    };

    /// <summary>The middleware after TLS: frees the slot.</summary>
    public static ConnectionDelegate Done(ConnectionDelegate next) => connection =>
    {
        connection.Features.Get<Handshake>()?.End();
        return next(connection);
    };

    /// <summary>One connection's handshake, and its slot if it has one, which is freed once.</summary>
    private sealed class Handshake(SemaphoreSlim? slots)
    {
        private SemaphoreSlim? _slots = slots;

        /// <summary>Set and read by the connection's own code, one middleware after the other.</summary>
        public bool IsDone { get; private set; }

        public void End()
        {
            IsDone = true;
            Leave();
        }

        public void Leave() => Interlocked.Exchange(ref _slots, null)?.Release();
    }
}
