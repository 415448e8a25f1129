namespace Kahuna.Client.Connection;

/// <summary>
/// One open stream to a node, carrying gRPC messages with their prefixes both ways. One writer and one reader at a time;
/// <see cref="Abort"/> from any thread. Owned by the <see cref="NodeLink"/> that opened it.
/// </summary>
internal interface IFrameStream : IAsyncDisposable
{
    /// <summary>Writes whole messages and sees to it that they leave. The bytes may be reused when it completes.</summary>
    ValueTask WriteAsync(ReadOnlyMemory<byte> messages);

    /// <summary>Reads what is there, at least one byte; 0 at the end of the stream.</summary>
    ValueTask<int> ReadAsync(Memory<byte> buffer);

    /// <summary>After the end: why the peer ended the stream, for a person; null when it said nothing.</summary>
    ValueTask<string?> EndReasonAsync();

    /// <summary>Ends the stream now: pending and later reads and writes fail.</summary>
    void Abort();
}
