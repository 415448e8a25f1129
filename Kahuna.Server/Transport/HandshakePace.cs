using Microsoft.AspNetCore.Connections;

namespace Kahuna.Server.Transport;

/// <summary>
/// Lets a few TLS handshakes of clients go on at a time. Each costs a signature and a thread for about a millisecond, so that hundreds at once would delay everybody's calls by a
/// tenth of a second. Others wait in the order in which they came, but not for long: it smooths bursts and keeps nobody out. Any thread.
/// </summary>
/// <param name="holdMax">How long a handshake that waits for its client keeps its place.</param>
/// <param name="waitMax">How long a connection waits for a place before it goes on without one, so that silent clients cannot keep others out.</param>
/// <param name="failed">Hears of a hello that the platform could not read; its connection is over.</param>
internal sealed class HandshakePace(TimeSpan holdMax, TimeSpan waitMax, Action<Exception> failed)
{
    /// <summary>Handshakes at a time.</summary>
    public const int AtOnce = 4;

    /// <summary>The time that the costly part of a handshake takes on a slow machine.</summary>
    private static readonly TimeSpan s_holdMax = TimeSpan.FromMilliseconds(10);

    /// <summary>A part of any client's patience.</summary>
    private static readonly TimeSpan s_waitMax = TimeSpan.FromSeconds(1);

    private readonly SemaphoreSlim _places = new(AtOnce, AtOnce);

    public HandshakePace(Action<Exception> failed)
        : this(s_holdMax, s_waitMax, failed)
    {
    }

    /// <summary>The middleware before TLS.</summary>
    public ConnectionDelegate Waiting(ConnectionDelegate next) => async connection =>
    {
        bool hasPlace;
        try
        {
            hasPlace = await _places.WaitAsync(waitMax, connection.ConnectionClosed).ConfigureAwait(false);
        }
        catch (OperationCanceledException)
        {
            // The client is gone.
            return;
        }

        Handshake handshake = new(hasPlace ? _places : null);
        connection.Features.Set(handshake);
        using Timer? limit = hasPlace ? new(static handshake => ((Handshake)handshake!).Leave(), handshake, holdMax, Timeout.InfiniteTimeSpan) : null;
        try
        {
            await next(connection).ConfigureAwait(false);
        }
        catch (Exception error) when (!handshake.IsDone && error is (IndexOutOfRangeException or ArgumentOutOfRangeException))
        {
            // The platform reads past the end of some hellos. Nothing else is caught: a certificate that cannot be used must be seen.
            failed(error);
        }
        finally
        {
            handshake.Leave();
        }
    };

    /// <summary>The middleware after TLS.</summary>
    public static ConnectionDelegate Done(ConnectionDelegate next) => connection =>
    {
        connection.Features.Get<Handshake>()?.End();
        return next(connection);
    };

    /// <summary>One connection's handshake, and its place, if it has one, which it leaves once.</summary>
    private sealed class Handshake(SemaphoreSlim? places)
    {
        private SemaphoreSlim? _places = places;

        /// <summary>Set and read by the connection's own code, one part after the other.</summary>
        public bool IsDone { get; private set; }

        public void End()
        {
            IsDone = true;
            Leave();
        }

        public void Leave() => Interlocked.Exchange(ref _places, null)?.Release();
    }
}
