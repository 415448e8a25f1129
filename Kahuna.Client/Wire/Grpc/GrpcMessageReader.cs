using System.Buffers;
using Google.Protobuf;
using Kahuna.Client.Wire.Buffers;

namespace Kahuna.Client.Wire.Grpc;

/// <summary>Reads typed messages from the body of a response through one rented buffer. Owned by a <see cref="GrpcCall"/>; one reader at a time.</summary>
internal sealed class GrpcMessageReader(Stream stream, int maxBytes, string? encoding) : IDisposable
{
    private const int BufferBytesInitial = 4096;

    private byte[] _buffer = BufferArrays.Rent(BufferBytesInitial);
    private int _start;
    private int _end;
    private volatile bool _reading;

    /// <summary>The next message, or null at the end of the body.</summary>
    /// <exception cref="GrpcException">RESOURCE_EXHAUSTED: over the limit; INTERNAL: the body is cut off, or no message of this type.</exception>
    public async ValueTask<TMessage?> ReadAsync<TMessage>(MessageParser<TMessage> parser, CancellationToken cancellationToken)
        where TMessage : class, IMessage<TMessage>
    {
        if (!await FillAsync(GrpcProtocol.PrefixBytes, cancellationToken).ConfigureAwait(false))
        {
            return null;
        }

        int length = GrpcFraming.ReadPrefix(_buffer.AsSpan(_start), maxBytes, out bool compressed);
        await FillAsync(GrpcProtocol.PrefixBytes + length, cancellationToken).ConfigureAwait(false);
        ReadOnlyMemory<byte> body = _buffer.AsMemory(_start + GrpcProtocol.PrefixBytes, length);
        if (compressed)
        {
            if (encoding != GrpcProtocol.GzipEncoding)
            {
                throw new GrpcException(GrpcStatusCode.Internal, $"A message is compressed, and the response's grpc-encoding is '{encoding}'.");
            }

            body = GrpcGzip.Decompress(new ReadOnlySequence<byte>(body), maxBytes);
        }

        try
        {
            TMessage message = parser.ParseFrom(body.Span);
            _start += GrpcProtocol.PrefixBytes + length;
            return message;
        }
        catch (InvalidProtocolBufferException e)
        {
            throw new GrpcException(new GrpcStatus(GrpcStatusCode.Internal, $"The server's reply is no {typeof(TMessage).Name}."), inner: e);
        }
    }

    /// <inheritdoc/>
    public void Dispose()
    {
        byte[] buffer = _buffer;
        _buffer = [];
        _start = _end = 0;
        if (buffer.Length > 0 && !_reading)
        {
            // A read that is still under way keeps its buffer: the connection may write to it until the read has failed.
            BufferArrays.Return(buffer);
        }
    }

    /// <summary>Makes at least <paramref name="count"/> bytes available from <see cref="_start"/>. False at a clean end of the body.</summary>
    private async ValueTask<bool> FillAsync(int count, CancellationToken cancellationToken)
    {
        MakeRoom(count);
        while (_end - _start < count)
        {
            _reading = true;
            int read = await stream.ReadAsync(_buffer.AsMemory(_end), cancellationToken).ConfigureAwait(false);
            _reading = false;
            if (read > 0)
            {
                _end += read;
                continue;
            }

            return _end == _start
                ? false
                : throw new GrpcException(GrpcStatusCode.Internal, "The response ended in the middle of a message.");
        }

        return true;
    }

    private void MakeRoom(int count)
    {
        if (_buffer.Length - _start >= count && _start < _buffer.Length)
        {
            return;
        }

        byte[] target = _buffer.Length >= count ? _buffer : BufferArrays.Rent(count);
        Buffer.BlockCopy(_buffer, _start, target, 0, _end - _start);
        _end -= _start;
        _start = 0;
        if (!ReferenceEquals(target, _buffer))
        {
            BufferArrays.Return(_buffer);
            _buffer = target;
        }
    }
}
