namespace Kahuna.Client.Connection;

/// <summary>
/// Opens byte streams to the nodes. The connection logic reaches the network only through it. Owned by the connection;
/// any thread.
/// </summary>
internal interface IFrameChannel : IAsyncDisposable
{
    /// <summary>Opens an Exchange stream to a node. Throws when that fails, with a message for people.</summary>
    ValueTask<IFrameStream> OpenAsync(Uri endpoint, CancellationToken ct);
}

/// <summary>
/// One open stream to a node that carries gRPC messages with their prefixes both ways. One writer and one reader at a
/// time; <see cref="Abort"/> from any thread. Owned by the <see cref="NodeLink"/> that opened it.
/// </summary>
internal interface IFrameStream : IAsyncDisposable
{
    /// <summary>Writes whole messages and flushes them. The bytes may be reused when it completes.</summary>
    ValueTask WriteAsync(ReadOnlyMemory<byte> messages);

    /// <summary>Reads the available bytes, at least one; returns 0 at the end of the stream.</summary>
    ValueTask<int> ReadAsync(Memory<byte> buffer);

    /// <summary>Why the peer ended the stream, for people; null when it gave no reason. Valid after the end.</summary>
    ValueTask<string?> EndReasonAsync();

    /// <summary>Ends the stream now: pending and later reads and writes fail.</summary>
    void Abort();
}
