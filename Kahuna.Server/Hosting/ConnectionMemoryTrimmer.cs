using Microsoft.AspNetCore.Connections;

namespace Kahuna.Server.Hosting;

/// <summary>
/// Returns memory to the system after many connections have closed. Each had buffers here and in the TLS library, and a
/// node allocates too little to collect them soon by itself. Owned by the node: <see cref="Opened"/> and
/// <see cref="Closed"/> from any thread, <see cref="Check"/> from one at a time.
/// </summary>
/// <param name="trim">Collects and trims; called at most once per <see cref="Check"/>.</param>
internal sealed class ConnectionMemoryTrimmer(Action trim)
{
    /// <summary>Fewer closed connections, at about 60 KB each, are not worth a collection.</summary>
    private const int EndedMin = 256;

    private int _open;
    private int _peak;

    /// <summary>Open connections at the last check.</summary>
    private int _openAtCheck;

    /// <summary>Open connections.</summary>
    public int Open => Volatile.Read(ref _open);

    /// <summary>The middleware of an endpoint; counts its connections.</summary>
    public ConnectionDelegate Middleware(ConnectionDelegate next) => async connection =>
    {
        Opened();
        try
        {
            await next(connection).ConfigureAwait(false);
        }
        finally
        {
            Closed();
        }
    };

    public void Opened()
    {
        int open = Interlocked.Increment(ref _open);
        if (open > Volatile.Read(ref _peak))
        {
            // A race makes the peak inexact, which does not matter.
            Volatile.Write(ref _peak, open);
        }
    }

    public void Closed() => Interlocked.Decrement(ref _open);

    /// <summary>
    /// Called periodically. Trims when the number of connections has fallen by many and falls no further.
    /// </summary>
    public void Check()
    {
        int open = Volatile.Read(ref _open);
        bool fell = Volatile.Read(ref _peak) - open >= EndedMin;
        bool rests = open >= _openAtCheck;
        _openAtCheck = open;
        if (fell && rests)
        {
            Volatile.Write(ref _peak, open);
            trim();
        }
    }
}
