using System.Net.Security;

namespace Kahuna.Wire.Sockets;

/// <summary>
/// A connection that carries the frames of one stream (docs/adr/0054-direct-links.md). Its own thread reads; one thread
/// at a time writes; <see cref="Close"/> from any thread. Owned by the thread that reads, which disposes it when nobody
/// writes any longer.
/// </summary>
internal sealed class DirectConnection(BlockingSocket socket, SslStream connection) : IDisposable
{
    /// <summary>Waits for bytes; 0 at the end.</summary>
    /// <exception cref="IOException">The connection is lost.</exception>
    public int Read(Span<byte> buffer) => connection.Read(buffer);

    /// <summary>Encrypts bytes, which <see cref="FlushAsync"/> sends. Does not wait.</summary>
    public void Write(ReadOnlySpan<byte> bytes) => connection.Write(bytes);

    /// <summary>Sends what was written; completed, unless the other side does not read fast enough.</summary>
    /// <exception cref="IOException">The connection is lost; or the task has it.</exception>
    public Task FlushAsync() => socket.TryPush() ? Task.CompletedTask : StalledSockets.Shared.PushAsync(socket);

    /// <summary>Ends reads and writes in all threads.</summary>
    public void Close() => socket.Close();

    /// <inheritdoc/>
    public void Dispose() => connection.Dispose();
}
