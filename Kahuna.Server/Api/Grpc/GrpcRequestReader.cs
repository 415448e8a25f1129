using System.Buffers;
using System.IO.Pipelines;
using Google.Protobuf;
using Kahuna.Client.Wire.Grpc;

namespace Kahuna.Server.Api.Grpc;

/// <summary>Reads typed messages from the body of a request. Owned by a <see cref="CallContext"/>; one reader at a time.</summary>
internal sealed class GrpcRequestReader(HttpRequest request, GrpcServerOptions options)
{
    private readonly int _bytesMax = options.MaxReceiveMessageBytes;
    private readonly PipeReader _body = request.BodyReader;
    private volatile MessageWait? _wait;
    private RequestHold? _hold;
    private long _heldBytes;
    private volatile bool _onlyTaken;

    /// <summary>The one request of a call that has one was read whole. Any thread.</summary>
    public bool OnlyTaken => _onlyTaken;

    /// <summary>The wait for a message that is not here as a whole; made when one is waited for.</summary>
    public MessageWait Wait => _wait ??= new MessageWait(Share?.Requests, options.Requests);

    /// <summary>What the call's complete requests take up.</summary>
    public RequestHold Hold => _hold ??= new RequestHold(Share?.Held ?? new RequestRoom(RequestRoom.ConnectionBytesMax), options.Held);

    /// <summary>A message of a stream is waited for, longer than <paramref name="patience"/>. Any thread.</summary>
    public bool WaitsLongerThan(TimeSpan patience) => _wait?.IsLongerThan(patience) ?? false;

    /// <summary>The call is over.</summary>
    public void End()
    {
        _wait?.End();
        _hold?.Add(-Interlocked.Exchange(ref _heldBytes, 0));
    }

    private ConnectionShare? Share => request.HttpContext.Features.Get<ConnectionShare>();

    /// <summary>The one request of a call that has one. A message that is there already is read without waiting.</summary>
    /// <exception cref="GrpcException">INTERNAL: none, more than one, cut off, or no message of this type; RESOURCE_EXHAUSTED: over the limit.</exception>
    public ValueTask<TRequest> ReadOnlyAsync<TRequest>(MessageParser<TRequest> parser)
        where TRequest : class, IMessage<TRequest>
    {
        if (_body.TryRead(out ReadResult result) && TryTake(result, parser, out TRequest? message, only: true))
        {
            return new ValueTask<TRequest>(message!);
        }

        return WaitForOnlyAsync(parser);
    }

    /// <summary>The next request of a call that has many, or null after the last one.</summary>
    public ValueTask<TRequest?> ReadNextAsync<TRequest>(MessageParser<TRequest> parser, CancellationToken cancellationToken)
        where TRequest : class, IMessage<TRequest>
    {
        if (!cancellationToken.IsCancellationRequested && _body.TryRead(out ReadResult result))
        {
            bool completed = result.IsCompleted;
            if (TryTake(result, parser, out TRequest? message, only: false))
            {
                return new ValueTask<TRequest?>(message);
            }

            if (completed)
            {
                return new ValueTask<TRequest?>((TRequest?)null);
            }
        }

        return WaitForNextAsync(parser, cancellationToken);
    }

    /// <summary>Ends a read that waits; it fails with <see cref="OperationCanceledException"/>. Any thread.</summary>
    public void CancelPendingRead()
    {
        try
        {
            _body.CancelPendingRead();
        }
        catch (IOException)
        {
            // The stream was aborted, so the read has failed already.
        }
    }

    private async ValueTask<TRequest> WaitForOnlyAsync<TRequest>(MessageParser<TRequest> parser)
        where TRequest : class, IMessage<TRequest>
    {
        while (true)
        {
            ReadResult result = await _body.ReadAsync();
            bool completed = result.IsCompleted;
            if (TryTake(result, parser, out TRequest? message, only: true))
            {
                return message!;
            }

            if (completed)
            {
                throw new GrpcException(GrpcStatusCode.Internal, "The request has no message.");
            }
        }
    }

    private async ValueTask<TRequest?> WaitForNextAsync<TRequest>(MessageParser<TRequest> parser, CancellationToken cancellationToken)
        where TRequest : class, IMessage<TRequest>
    {
        while (true)
        {
            // What TryRead found was looked at already; a stream that has sent nothing at all is waited for as well.
            if (_wait is null)
            {
                Wait.Begin(0);
            }

            ReadResult result = await _body.ReadAsync(cancellationToken);
            bool completed = result.IsCompleted;
            if (TryTake(result, parser, out TRequest? message, only: false))
            {
                return message;
            }

            if (completed)
            {
                return null;
            }
        }
    }

    /// <summary>Takes a message out of what was read and gives the rest back. False when there is none yet; a body that ends in the middle of one throws.</summary>
    private bool TryTake<TRequest>(ReadResult result, MessageParser<TRequest> parser, out TRequest? message, bool only)
        where TRequest : class, IMessage<TRequest>
    {
        message = null;
        ReadOnlySequence<byte> buffer = result.Buffer;
        SequencePosition examined = buffer.End;
        try
        {
            if (result.IsCanceled)
            {
                throw new OperationCanceledException("The call has ended.");
            }

            if (GrpcFraming.TryRead(ref buffer, _bytesMax, out bool compressed, out ReadOnlySequence<byte> body))
            {
                body = compressed ? Unpack(body) : body;
                if (only)
                {
                    Take(body.Length);
                }

                message = Parse(parser, body);
                examined = buffer.Start;
                _onlyTaken = only;
                _wait?.End();
                return only && !buffer.IsEmpty
                    ? throw new GrpcException(GrpcStatusCode.Internal, "The request has more than one message.")
                    : true;
            }

            if (result.IsCompleted && !buffer.IsEmpty)
            {
                throw new GrpcException(GrpcStatusCode.Internal, "The request ended in the middle of a message.");
            }

            if (!result.IsCompleted)
            {
                Wait.Begin(buffer.Length);
            }

            return false;
        }
        finally
        {
            _body.AdvanceTo(buffer.Start, examined);
        }
    }

    /// <summary>The one request of a call is in memory until the call is over. Small ones always fit, and are as many as a connection has calls.</summary>
    private void Take(long bytes)
    {
        if (bytes <= RequestRoom.SmallBytes)
        {
            return;
        }

        if (!Hold.HasRoom(bytes))
        {
            throw new GrpcException(GrpcStatusCode.ResourceExhausted, "The connection, or the node, has as many requests waiting to be carried out as it may; this one was not. Try again when others have ended.");
        }

        _heldBytes = bytes;
        Hold.Add(bytes);
    }

    private static TRequest Parse<TRequest>(MessageParser<TRequest> parser, ReadOnlySequence<byte> body)
        where TRequest : class, IMessage<TRequest>
    {
        try
        {
            TRequest message = parser.ParseFrom(body);
            return Utf8Fields.FirstInvalid(message.Descriptor, body) is { } field
                ? throw new GrpcException(GrpcStatusCode.InvalidArgument, $"{field} is not valid UTF-8; nothing was done.")
                : message;
        }
        catch (InvalidProtocolBufferException e)
        {
            throw new GrpcException(new GrpcStatus(GrpcStatusCode.Internal, $"The request is no {typeof(TRequest).Name}: {e.Message}"), inner: e);
        }
    }

    private ReadOnlySequence<byte> Unpack(ReadOnlySequence<byte> body)
    {
        string? encoding = request.Headers[GrpcProtocol.EncodingHeader];
        return encoding == GrpcProtocol.GzipEncoding
            ? new ReadOnlySequence<byte>(GrpcGzip.Decompress(body, _bytesMax))
            : throw new GrpcException(GrpcStatusCode.Internal, $"A message is compressed, and the request's grpc-encoding is '{encoding}'.");
    }
}
