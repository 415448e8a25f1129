namespace Kahuna.Server.Api.Grpc;

/// <summary>What one connection has taken of what a connection may have. A feature of the connection, made when it is accepted; any thread.</summary>
internal sealed class ConnectionShare
{
    private int _streams;

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

    public void CloseStream() => Interlocked.Decrement(ref _streams);
}
