using Microsoft.AspNetCore.Connections;

namespace Kahuna.Server.Hosting;

/// <summary>
/// Gives memory back when many connections have ended. Each had buffers here and in the TLS library, and a node allocates too little to collect and
/// trim them by itself, so that a flood's memory would count as the process's for ever. Owned by the node: <see cref="Opened"/> and <see cref="Closed"/> from any
/// thread, <see cref="Look"/> from one at a time.
/// </summary>
/// <param name="giveBack">Collects and trims; called at most once per <see cref="Look"/>.</param>
internal sealed class ConnectionMemory(Action giveBack)
{
    /// <summary>Fewer connections than this, at some 60 KB each, are not worth a collection.</summary>
    private const int EndedMin = 256;

    private int _open;
    private int _peak;

    /// <summary>Connections at the last look.</summary>
    private int _seen;

    /// <summary>The middleware of an endpoint that counts its connections.</summary>
    public ConnectionDelegate Counting(ConnectionDelegate next) => async connection =>
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
            // A race costs the exact peak, which nobody needs.
            Volatile.Write(ref _peak, open);
        }
    }

    public void Closed() => Interlocked.Decrement(ref _open);

    /// <summary>Called now and then: gives memory back when the number of connections has fallen by much and falls no more.</summary>
    public void Look()
    {
        int open = Volatile.Read(ref _open);
        bool fell = Volatile.Read(ref _peak) - open >= EndedMin;
        bool rests = open >= _seen;
        _seen = open;
        if (fell && rests)
        {
            Volatile.Write(ref _peak, open);
            giveBack();
        }
    }
}
