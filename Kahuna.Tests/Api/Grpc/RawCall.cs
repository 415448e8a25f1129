using System.Net.Security;
using Kahuna.Client.Connection;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>
/// A stream of bytes to one method of a server, opened by the SDK's own transport; whoever writes frames the messages.
/// Owned by one test; one writer and one reader at a time.
/// </summary>
internal sealed class RawCall : IDisposable
{
    public const int OK = 0;
    public const int Cancelled = 1;
    public const int InvalidArgument = 3;
    public const int DeadlineExceeded = 4;
    public const int ResourceExhausted = 8;
    public const int Unimplemented = 12;

    private readonly GrpcFrameStream _stream;
    private readonly HttpMessageInvoker? _owned;

    private RawCall(GrpcFrameStream stream, HttpMessageInvoker? owned)
    {
        _stream = stream;
        _owned = owned;
    }

    /// <summary>A connection that many streams can share; it trusts any certificate.</summary>
    public static HttpMessageInvoker Connection() => new(new SocketsHttpHandler
    {
        InitialHttp2StreamWindowSize = 1 << 20,
        SslOptions = new SslClientAuthenticationOptions
        {
            RemoteCertificateValidationCallback = static (_, _, _, _) => true,
        },
        UseProxy = false,
    });

    /// <summary>Opens a stream on a connection of its own.</summary>
    /// <exception cref="StreamRefusedException">The server ended it at once.</exception>
    public static Task<RawCall> OpenAsync(Uri address, string path, CancellationToken ct = default)
    {
        HttpMessageInvoker owned = Connection();
        return OpenAsync(owned, address, path, owned, ct);
    }

    /// <summary>Opens a stream on a given connection.</summary>
    /// <exception cref="StreamRefusedException">The server ended it at once.</exception>
    public static Task<RawCall> OpenAsync(
        HttpMessageInvoker connection, Uri address, string path, CancellationToken ct = default) =>
        OpenAsync(connection, address, path, owned: null, ct);

    /// <summary>Why a stream is refused, which it must be.</summary>
    public static async Task<StreamStatus> RefusalAsync(Task<RawCall> opening) =>
        (await Assert.ThrowsAsync<StreamRefusedException>(() => opening)).Status;

    /// <summary>Writes bytes, which leave at once. Waits while the server does not read.</summary>
    public Task WriteAsync(ReadOnlyMemory<byte> bytes) => _stream.WriteAsync(bytes).AsTask();

    /// <summary>Reads what is there; 0 at the end.</summary>
    public Task<int> ReadAsync(Memory<byte> buffer) => _stream.ReadAsync(buffer).AsTask();

    /// <summary>Reads until the buffer is full.</summary>
    /// <exception cref="EndOfStreamException">The stream ends before.</exception>
    public async Task ReadExactlyAsync(Memory<byte> buffer)
    {
        while (!buffer.IsEmpty)
        {
            int read = await ReadAsync(buffer);
            buffer = read > 0 ? buffer[read..] : throw new EndOfStreamException();
        }
    }

    /// <summary>The server sees the end of its input.</summary>
    public void CompleteRequests() => _stream.CompleteWrites();

    /// <summary>Passes over what is left of the replies; how the server ended the stream.</summary>
    public async Task<StreamStatus> StatusAsync()
    {
        byte[] rest = new byte[4096];
        while (await ReadAsync(rest) > 0)
        {
        }

        return _stream.Status;
    }

    /// <summary>Ends the stream; the server sees it cancelled unless it was over.</summary>
    public void Dispose()
    {
        _stream.DisposeAsync().AsTask().GetAwaiter().GetResult();
        _owned?.Dispose();
    }

    private static async Task<RawCall> OpenAsync(
        HttpMessageInvoker connection, Uri address, string path, HttpMessageInvoker? owned, CancellationToken ct)
    {
        try
        {
            return new RawCall(
                await GrpcFrameStream.OpenAsync(connection, new Uri(address, path), header: null, ct), owned);
        }
        catch
        {
            owned?.Dispose();
            throw;
        }
    }
}
