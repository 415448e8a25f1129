using System.Net;

namespace Kahuna.Client.Wire.Grpc;

/// <summary>The body of a request that has one message. Owned by the HTTP client; it may be sent again when a connection turned out to be closed.</summary>
internal sealed class MessageContent(ReadOnlyMemory<byte> framed) : HttpContent
{
    /// <inheritdoc/>
    protected override Task SerializeToStreamAsync(Stream stream, TransportContext? context) => SerializeToStreamAsync(stream, context, CancellationToken.None);

    /// <inheritdoc/>
    protected override Task SerializeToStreamAsync(Stream stream, TransportContext? context, CancellationToken cancellationToken) =>
        stream.WriteAsync(framed, cancellationToken).AsTask();

    /// <inheritdoc/>
    protected override bool TryComputeLength(out long length)
    {
        // With a length the client would add a content-length header, which other gRPC clients do not send.
        length = 0;
        return false;
    }
}
