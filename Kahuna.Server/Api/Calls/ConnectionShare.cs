using Kahuna.Server.Api.Openings;
using Microsoft.AspNetCore.Connections;

namespace Kahuna.Server.Api.Calls;

/// <summary>What one connection has taken of what a connection may have. A feature of the connection, made when it is accepted; any thread.</summary>
internal sealed class ConnectionShare(ConnectionContext connection)
{
    /// <summary>
    /// Calls that a client may reset: as many as can be open at once, as when all their deadlines pass together, and 100 per second. So opening and resetting at the speed of the
    /// network costs the node little more than the handshakes of the connections that it takes.
    /// </summary>
    public static readonly OpeningRate Resets = new(Burst: KestrelLimits.StreamsPerConnectionMax, PerSecond: 100);

    private readonly Lock _lock = new();
    private readonly TokenBucket _resets = new(Resets, Environment.TickCount64);
    private int _streams;
    private long _replyBytes;

    /// <summary>Bytes of its requests that are not complete.</summary>
    public RequestRoom Requests { get; } = new(RequestRoom.ConnectionBytesMax);

    /// <summary>Bytes of its requests that are complete and wait for something.</summary>
    public RequestRoom Held { get; } = new(RequestRoom.ConnectionBytesMax);

    /// <summary>Counts a call that has no end of its own. False, and not counted, when the connection has as many as it may.</summary>
    public bool TryOpenStream(int streamsMax)
    {
        if (Interlocked.Increment(ref _streams) <= streamsMax)
        {
            return true;
        }

        CloseStream();
        return false;
    }

    /// <summary>Adds to the bytes of unary replies that the caller has not read; a negative number takes them off. Returns the new sum.</summary>
    public long AddReply(long bytes) => Interlocked.Add(ref _replyBytes, bytes);

    /// <summary>Counts a call that the client has reset. False when those are too many: the connection is closed.</summary>
    public bool TryReset()
    {
        lock (_lock)
        {
            if (_resets.TryTake(Environment.TickCount64))
            {
                return true;
            }
        }

        Close("The client resets more calls than it may.");
        return false;
    }

    /// <summary>Closes the connection without a word to the peer.</summary>
    public void Close(string reason) => connection.Abort(new ConnectionAbortedException(reason));

    public void CloseStream() => Interlocked.Decrement(ref _streams);
}
