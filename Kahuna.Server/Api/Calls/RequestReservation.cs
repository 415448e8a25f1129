using Kahuna.Wire;

namespace Kahuna.Server.Api.Calls;

/// <summary>
/// The memory of one call's complete requests while they wait to be executed or answered. It counts against the budgets
/// of connection and node. A connection gets a sixteenth of the free bytes, 15 MiB of an empty node, so that eleven
/// greedy connections leave half of the budget free. Any thread.
/// </summary>
/// <param name="connection">The connection's budget.</param>
/// <param name="node">The node's budget.</param>
internal sealed class RequestReservation(RequestBudget connection, RequestBudget node)
{
    /// <summary>A connection gets this fraction of the free bytes.</summary>
    private const int Shares = 16;

    /// <summary>
    /// Largest request that a connection without waiting requests may always make: a frame of an ordinary client.
    /// Without it, a node full of others' requests would stop clients that send little.
    /// </summary>
    private const int OrdinaryBytes = Limits.FrameBytesTarget + RequestBudget.SmallBytes;

    /// <summary>
    /// First pause between two checks of the budget. Bytes are released in many places, so a stream polls.
    /// </summary>
    private static readonly TimeSpan s_pauseMin = TimeSpan.FromMilliseconds(20);

    /// <summary>
    /// The pause doubles up to this, so that ten thousand waiting streams cost a few thousand checks per second.
    /// </summary>
    private static readonly TimeSpan s_pauseMax = TimeSpan.FromSeconds(1);

    private long _bytes;

    /// <summary>Bytes of this call's requests.</summary>
    public long Bytes => Volatile.Read(ref _bytes);

    /// <summary>Adds bytes; a negative number releases them.</summary>
    public void Add(long bytes)
    {
        Interlocked.Add(ref _bytes, bytes);
        connection.Add(bytes);
        node.Add(bytes);
    }

    /// <summary>
    /// True if a request of this size fits. <see cref="RequestBudget.SmallBytes"/> of each call always fit. A
    /// connection without waiting requests may make one of ordinary size in any case, and a larger one if the node has
    /// the bytes left.
    /// </summary>
    public bool Fits(long bytes)
    {
        long free = node.Free;
        return Bytes + bytes <= RequestBudget.SmallBytes
            || connection.Used + bytes <= free / Shares
            || (connection.Used <= RequestBudget.SmallBytes && bytes <= Math.Max(free, OrdinaryBytes));
    }

    /// <summary>Waits until a request of this size fits.</summary>
    /// <exception cref="OperationCanceledException">The call is over.</exception>
    public async Task WaitUntilFitsAsync(long bytes, CancellationToken ended)
    {
        node.AddWaiting(1);
        try
        {
            for (TimeSpan pause = s_pauseMin; !Fits(bytes); pause = pause < s_pauseMax / 2 ? 2 * pause : s_pauseMax)
            {
                await Task.Delay(pause, ended).ConfigureAwait(false);
            }
        }
        finally
        {
            node.AddWaiting(-1);
        }
    }
}
