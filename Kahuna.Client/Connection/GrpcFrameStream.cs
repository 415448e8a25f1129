using System.Net;
using System.Net.Http.Headers;
using System.Runtime.CompilerServices;
using Kahuna.Wire.Sockets;

namespace Kahuna.Client.Connection;

/// <summary>
/// A gRPC stream over the network: one HTTP/2 request whose two bodies stay open. Owned by the <see cref="NodeLink"/>
/// that opened it; threading as <see cref="IFrameStream"/>.
/// </summary>
internal sealed class GrpcFrameStream : IFrameStream
{
    /// <summary>Names the SDK and its version.</summary>
    public static readonly ProductInfoHeaderValue UserAgent = new(
        "kahuna-dotnet", typeof(GrpcFrameStream).Assembly.GetName().Version!.ToString(3));

    private readonly CancellationTokenSource _end = new();
    private readonly RequestBody _body = new();
    private Stream _output = Stream.Null;
    private Stream _input = Stream.Null;
    private HttpResponseMessage? _response;

    /// <summary>How the node ended the stream; valid after the end.</summary>
    public StreamStatus Status => StreamStatus.AtEnd(_response!);

    /// <summary>
    /// Opens a stream. Returns when the node's headers have arrived, so the node must send them before it waits for a
    /// message.
    /// </summary>
    /// <param name="connection">The connection that sends the request.</param>
    /// <param name="method">The node's address with <c>/package.Service/Method</c>.</param>
    /// <param name="header">A header besides those of the protocol; null for none.</param>
    /// <param name="ct">Cancels the attempt to open; it has no effect on the open stream.</param>
    /// <param name="wantsLink">Whether to ask for a direct link.</param>
    /// <exception cref="StreamRefusedException">
    /// The node ended the stream at once, or the peer does not speak gRPC.
    /// </exception>
    public static async Task<GrpcFrameStream> OpenAsync(
        HttpMessageInvoker connection,
        Uri method,
        (string Name, string Value)? header,
        CancellationToken ct,
        bool wantsLink = false)
    {
        GrpcFrameStream stream = new();
        try
        {
            using (ct.UnsafeRegister(static state => ((GrpcFrameStream)state!).Abort(), stream))
            {
                await stream.SendAsync(connection, method, header, wantsLink).ConfigureAwait(false);
            }

            ct.ThrowIfCancellationRequested();
            return stream;
        }
        catch
        {
            await stream.DisposeAsync().ConfigureAwait(false);
            ct.ThrowIfCancellationRequested();
            throw;
        }
    }

    /// <inheritdoc/>
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder))]
    public async ValueTask WriteAsync(ReadOnlyMemory<byte> messages)
    {
        await _output.WriteAsync(messages, _end.Token).ConfigureAwait(false);
        await _output.FlushAsync(_end.Token).ConfigureAwait(false);
    }

    /// <summary>Ends the node's input after the last write; the node may still answer.</summary>
    public void CompleteWrites() => _body.Completed.TrySetResult();

    /// <inheritdoc/>
    public ValueTask<int> ReadAsync(Memory<byte> buffer) => _input.ReadAsync(buffer, _end.Token);

    /// <inheritdoc/>
    public ValueTask<string?> EndReasonAsync() => new(Status is { IsOK: false } status ? status.ToString() : null);

    /// <inheritdoc/>
    public StreamStatus? EndStatus => _response is null ? null : Status;

    /// <summary>A header of the node; null when it sent none of this name.</summary>
    public string? HeaderOf(string name) =>
        _response!.Headers.NonValidated.TryGetValues(name, out HeaderStringValues values) ? values.First() : null;

    /// <inheritdoc/>
    public void Abort() => _end.Cancel();

    /// <inheritdoc/>
    public ValueTask DisposeAsync()
    {
        Abort();
        _response?.Dispose();
        return ValueTask.CompletedTask;
    }

    private async Task SendAsync(
        HttpMessageInvoker connection, Uri method, (string Name, string Value)? header, bool wantsLink)
    {
        HttpRequestMessage request = new(HttpMethod.Post, method)
        {
            Version = HttpVersion.Version20,
            VersionPolicy = HttpVersionPolicy.RequestVersionExact,
            Content = _body,
        };
        _body.Headers.ContentType = new MediaTypeHeaderValue("application/grpc");
        request.Headers.UserAgent.Add(UserAgent);
        request.Headers.TryAddWithoutValidation("te", "trailers");
        if (wantsLink)
        {
            request.Headers.TryAddWithoutValidation(DirectLinkProtocol.Header, DirectLinkProtocol.Wanted);
        }

        if (header is { } own)
        {
            request.Headers.TryAddWithoutValidation(own.Name, own.Value);
        }

        _response = await connection.SendAsync(request, _end.Token).ConfigureAwait(false);
        _input = await _response.Content.ReadAsStreamAsync(_end.Token).ConfigureAwait(false);
        if (StreamStatus.RefusalIn(_response) is { } refusal)
        {
            throw new StreamRefusedException(refusal);
        }

        _output = await _body.Opened.Task.WaitAsync(_end.Token).ConfigureAwait(false);
    }

    /// <summary>
    /// A request body that hands out the connection's own stream, until the writes are complete or the stream ends. Any
    /// thread.
    /// </summary>
    private sealed class RequestBody : HttpContent
    {
        public TaskCompletionSource<Stream> Opened { get; } = new(TaskCreationOptions.RunContinuationsAsynchronously);

        public TaskCompletionSource Completed { get; } = new(TaskCreationOptions.RunContinuationsAsynchronously);

        protected override Task SerializeToStreamAsync(Stream stream, TransportContext? context) =>
            SerializeToStreamAsync(stream, context, CancellationToken.None);

        protected override async Task SerializeToStreamAsync(
            Stream stream, TransportContext? context, CancellationToken cancellationToken)
        {
            // The flush sends the request's headers: a node may answer or refuse before it receives a message.
            await stream.FlushAsync(cancellationToken).ConfigureAwait(false);
            if (!Opened.TrySetResult(stream))
            {
                throw new IOException("The connection was lost, and an open stream cannot be sent again.");
            }

            await Completed.Task.WaitAsync(cancellationToken).ConfigureAwait(false);
        }

        protected override bool TryComputeLength(out long length)
        {
            length = 0;
            return false;
        }
    }
}

/// <summary>
/// Opens byte streams to the nodes. The connection logic reaches the network only through it. Owned by the connection;
/// any thread.
/// </summary>
internal interface IFrameChannel : IAsyncDisposable
{
    /// <summary>Opens an Exchange stream to a node. Throws when that fails, with a message for people.</summary>
    /// <param name="endpoint">The node.</param>
    /// <param name="authorization">Says who the client is, as the header of HTTP; null: nobody. Secret.</param>
    /// <param name="ct">Cancels the attempt.</param>
    ValueTask<IFrameStream> OpenAsync(Uri endpoint, string? authorization, CancellationToken ct);

    /// <summary>As the other one, for nobody.</summary>
    ValueTask<IFrameStream> OpenAsync(Uri endpoint, CancellationToken ct) =>
        OpenAsync(endpoint, authorization: null, ct);

    /// <summary>
    /// Opens a stream of watches to a node, as <see cref="OpenAsync(Uri, string?, CancellationToken)"/> an Exchange.
    /// </summary>
    ValueTask<IFrameStream> OpenWatchAsync(Uri endpoint, string? authorization, CancellationToken ct) =>
        throw new NotSupportedException("This network carries no watches.");

    /// <summary>As the other one, for nobody.</summary>
    ValueTask<IFrameStream> OpenWatchAsync(Uri endpoint, CancellationToken ct) =>
        OpenWatchAsync(endpoint, authorization: null, ct);

    /// <summary>Makes a unary call.</summary>
    /// <param name="endpoint">The node.</param>
    /// <param name="call">What is called.</param>
    /// <param name="authorization">As for a stream.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <returns>The node's answer, or how it ended the call.</returns>
    /// <exception cref="CallLostException">No answer came; it says whether the call was sent.</exception>
    ValueTask<CallAnswer> CallAsync(Uri endpoint, UnaryCall call, string? authorization, CancellationToken ct) =>
        throw new NotSupportedException("This network carries no unary calls.");
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

    /// <summary>How the peer ended the stream; null when it did not say. Valid after the end.</summary>
    StreamStatus? EndStatus => null;

    /// <summary>Ends the stream now: pending and later reads and writes fail.</summary>
    void Abort();
}
