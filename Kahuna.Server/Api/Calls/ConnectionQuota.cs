using Kahuna.Server.Api.RateLimits;
using Kahuna.Server.Partitions.Ports;
using Microsoft.AspNetCore.Connections;

namespace Kahuna.Server.Api.Calls;

/// <summary>
/// Tracks what one connection uses of its limits. A feature of the connection, created when it is accepted; any thread.
/// </summary>
internal sealed class ConnectionQuota(ConnectionContext connection)
{
    /// <summary>
    /// Limit of calls that a client may reset: all that can be open at once, as when their deadlines pass together, and
    /// 100 per second. A client that opens and resets calls at network speed then costs the node little more than the
    /// handshakes of its connections.
    /// </summary>
    public static readonly RateLimit Resets = new(Burst: KestrelLimits.StreamsPerConnectionMax, PerSecond: 100);

    private readonly Lock _lock = new();
    private readonly TokenBucket _resets = new(Resets, TimeProvider.System.Now());
    private int _streams;
    private long _replyBytes;

    /// <summary>Bytes of incomplete requests.</summary>
    public RequestBudget Incomplete { get; } = new(RequestBudget.ConnectionBytesMax);

    /// <summary>Bytes of complete requests that wait to be executed or answered.</summary>
    public RequestBudget Waiting { get; } = new(RequestBudget.ConnectionBytesMax);

    /// <summary>What the connection's scans take up.</summary>
    public ScanShare Scans { get; } = new();

    /// <summary>Counts an open stream. False, and not counted, if the connection has its maximum.</summary>
    public bool TryOpenStream(int streamsMax)
    {
        if (Interlocked.Increment(ref _streams) <= streamsMax)
        {
            return true;
        }

        CloseStream();
        return false;
    }

    /// <summary>Adds to the bytes of unread unary replies; a negative number subtracts. Returns the new sum.</summary>
    public long AddReply(long bytes) => Interlocked.Add(ref _replyBytes, bytes);

    /// <summary>
    /// Counts a call that the client reset. Above the limit it closes the connection and returns false.
    /// </summary>
    public bool TryReset()
    {
        lock (_lock)
        {
            if (_resets.TryTake(TimeProvider.System.Now()))
            {
                return true;
            }
        }

        Close("The client exceeds the rate limit of reset calls.");
        return false;
    }

    /// <summary>Closes the connection without notice to the peer.</summary>
    public void Close(string reason) => connection.Abort(new ConnectionAbortedException(reason));

    public void CloseStream() => Interlocked.Decrement(ref _streams);
}
