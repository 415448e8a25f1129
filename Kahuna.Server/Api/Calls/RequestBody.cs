using System.Buffers;
using System.IO.Pipelines;
using Google.Protobuf;
using Google.Protobuf.Reflection;
using Grpc.Core;
using Microsoft.AspNetCore.Http.Features;

namespace Kahuna.Server.Api.Calls;

/// <summary>
/// The body of a call's request as the gRPC package sees it: whole messages only, unpacked and with valid text. What has arrived of one that is not whole counts in the rooms for
/// requests, and how long it is waited for is watched. Owned by a <see cref="GuardedCall"/>; one reader at a time, <see cref="GiveUp"/> from any thread.
/// </summary>
/// <param name="request">The request below.</param>
/// <param name="limits">What a call may take.</param>
/// <param name="isOnly">The call has one request: it is answered when that is here, whether or not the caller has said that nothing follows.</param>
/// <param name="type">Type of the messages; null: their text is not checked.</param>
internal sealed class RequestBody(HttpRequest request, CallLimits limits, bool isOnly, MessageDescriptor? type) : PipeReader, IRequestBodyPipeFeature
{
    /// <summary>A body of JSON is in memory as bytes, as text of two bytes a character, and as the message.</summary>
    private const int CopiesOfText = 4;

    private volatile MessageWait? _wait;
    private RequestHold? _hold;
    private long _heldBytes;
    private SequencePosition? _packedEnd;
    private bool _isTaken;
    private volatile bool _isOverdue;

    /// <summary>The bytes as they come, for handlers that frame by themselves.</summary>
    public PipeReader Inner { get; } = request.BodyReader;

    /// <summary>Read by the package.</summary>
    public PipeReader Reader => this;

    /// <summary>The caller has taken too long for a message.</summary>
    public bool IsOverdue => _isOverdue;

    /// <summary>Why what came is no message of this call; null: it was one, or nothing came.</summary>
    public string? Fault { get; set; }

    /// <summary>Ends the next read, and so the call, in place of a message.</summary>
    public RpcException? Refusal { get; set; }

    /// <summary>The wait for a message that is not here as a whole; made when one is waited for.</summary>
    public MessageWait Wait => _wait ??= new MessageWait(Share?.Requests, limits.Requests);

    /// <summary>What the call's complete requests take up.</summary>
    public RequestHold Hold => _hold ??= new RequestHold(Share?.Held ?? new RequestRoom(RequestRoom.ConnectionBytesMax), limits.Held);

    /// <summary>What is left of the patience with the message that is waited for; null when none is. Any thread.</summary>
    public TimeSpan? PatienceLeft => _wait?.Left(limits.RequestPatience);

    private ConnectionShare? Share => request.HttpContext.Features.Get<ConnectionShare>();

    /// <summary>Ends a read that waits: the caller was too slow. Any thread.</summary>
    public void GiveUp()
    {
        _isOverdue = true;
        try
        {
            Inner.CancelPendingRead();
        }
        catch (IOException)
        {
            // The stream was aborted, so the read has failed already.
        }
    }

    /// <summary>The status of a call whose message did not arrive in time.</summary>
    public RpcException Overdue() =>
        new(new Status(StatusCode.DeadlineExceeded, string.Create(System.Globalization.CultureInfo.InvariantCulture, $"The request was not complete after {limits.RequestPatience.TotalSeconds} s.")));

    /// <summary>The call is over: nothing is waited for or held.</summary>
    public void End()
    {
        _wait?.End();
        _hold?.Add(-Interlocked.Exchange(ref _heldBytes, 0));
    }

    /// <summary>The whole body of a request that is not made of messages.</summary>
    /// <exception cref="RpcException">DEADLINE_EXCEEDED: it does not arrive; RESOURCE_EXHAUSTED: it is over the limit, or there is no room for it.</exception>
    public async ValueTask<byte[]> ReadWholeAsync(int bytesMax, CancellationToken cancellationToken)
    {
        while (true)
        {
            ReadResult result = await Inner.ReadAsync(cancellationToken).ConfigureAwait(false);
            ReadOnlySequence<byte> buffer = result.Buffer;
            try
            {
                if (result.IsCanceled)
                {
                    throw Overdue();
                }

                if (buffer.Length > bytesMax)
                {
                    throw new RpcException(new Status(StatusCode.ResourceExhausted, $"The body is larger than the limit of {bytesMax} bytes."));
                }

                if (result.IsCompleted)
                {
                    _wait?.End();
                    Keep(buffer.Length * CopiesOfText);
                    return buffer.ToArray();
                }

                Wait.Begin(buffer.Length);
            }
            finally
            {
                Inner.AdvanceTo(result.IsCompleted ? buffer.End : buffer.Start, buffer.End);
            }
        }
    }

    /// <inheritdoc/>
    public override bool TryRead(out ReadResult result) => throw new NotSupportedException("The gRPC package does not try.");

    /// <inheritdoc/>
    public override ValueTask<ReadResult> ReadAsync(CancellationToken cancellationToken = default)
    {
        if (Refusal is { } refusal)
        {
            throw refusal;
        }

        if (isOnly && _isTaken)
        {
            return new ValueTask<ReadResult>(new ReadResult(default, isCanceled: false, isCompleted: true));
        }

        ValueTask<ReadResult> read = Inner.ReadAsync(cancellationToken);
        if (read.IsCompletedSuccessfully)
        {
            ReadResult result = read.Result;
            if (IsWhole(ref result))
            {
                return new ValueTask<ReadResult>(result);
            }

            read = Inner.ReadAsync(cancellationToken);
        }

        return WaitAsync(read, cancellationToken);
    }

    /// <inheritdoc/>
    public override void AdvanceTo(SequencePosition consumed) => AdvanceTo(consumed, consumed);

    /// <inheritdoc/>
    public override void AdvanceTo(SequencePosition consumed, SequencePosition examined)
    {
        if (_packedEnd is { } end)
        {
            _packedEnd = null;
            Inner.AdvanceTo(end);
        }
        else if (consumed.GetObject() is not null)
        {
            Inner.AdvanceTo(consumed, examined);
        }
    }

    /// <inheritdoc/>
    public override void CancelPendingRead() => Inner.CancelPendingRead();

    /// <inheritdoc/>
    public override void Complete(Exception? exception = null) => Inner.Complete(exception);

    private async ValueTask<ReadResult> WaitAsync(ValueTask<ReadResult> read, CancellationToken cancellationToken)
    {
        if (_wait is null)
        {
            // A stream that has sent nothing at all is waited for as well.
            Wait.Begin(0);
        }

        while (true)
        {
            ReadResult result = await read.ConfigureAwait(false);
            if (IsWhole(ref result))
            {
                return result;
            }

            read = Inner.ReadAsync(cancellationToken);
        }
    }

    /// <summary>True when the package is to see what was read: a whole message, or the end. Else it was given back, and more is waited for.</summary>
    private bool IsWhole(ref ReadResult result)
    {
        ReadOnlySequence<byte> buffer = result.Buffer;
        try
        {
            if (result.IsCanceled)
            {
                throw _isOverdue ? Overdue() : new OperationCanceledException("The call has ended.");
            }

            if (MessageFraming.TryRead(ref buffer, limits.MessageBytesMax, out bool compressed, out ReadOnlySequence<byte> message))
            {
                result = Take(in result, message, compressed, isLast: buffer.IsEmpty);
                return true;
            }

            if (result.IsCompleted)
            {
                return buffer.IsEmpty ? true : throw Malformed("The request ended in the middle of a message.");
            }

            Wait.Begin(buffer.Length);
        }
        catch (Exception e)
        {
            if (e is RpcException { StatusCode: StatusCode.Internal } malformed)
            {
                Fault = malformed.Status.Detail;
            }

            Inner.AdvanceTo(buffer.Start, buffer.End);
            throw;
        }

        Inner.AdvanceTo(buffer.Start, buffer.End);
        return false;
    }

    private ReadResult Take(in ReadResult result, ReadOnlySequence<byte> message, bool compressed, bool isLast)
    {
        if (isOnly && !isLast)
        {
            throw Malformed("The request has more than one message.");
        }

        ReadOnlySequence<byte> whole = result.Buffer.Slice(0, message.End);
        SequencePosition? packedEnd = null;
        if (compressed)
        {
            packedEnd = message.End;
            whole = Unpack(message);
            message = whole.Slice(MessageFraming.PrefixBytes);
        }

        if (isOnly)
        {
            Keep(message.Length);
        }

        Check(message);
        _packedEnd = packedEnd;
        _isTaken = true;
        _wait?.End();
        return new ReadResult(whole, isCanceled: false, isCompleted: isOnly || (result.IsCompleted && isLast));
    }

    /// <summary>The one request of a call is in memory until the call is over. Small ones always fit, and are as many as a connection has calls.</summary>
    private void Keep(long bytes)
    {
        if (bytes <= RequestRoom.SmallBytes)
        {
            return;
        }

        if (!Hold.HasRoom(bytes))
        {
            throw new RpcException(new Status(
                StatusCode.ResourceExhausted,
                "The connection, or the node, has as many requests waiting to be carried out as it may; this one was not. Try again when others have ended."));
        }

        _heldBytes = bytes;
        Hold.Add(bytes);
    }

    private void Check(ReadOnlySequence<byte> message)
    {
        if (type is null)
        {
            return;
        }

        if (Utf8Fields.FirstInvalid(type, message, out bool isBroken) is { } field)
        {
            throw new RpcException(new Status(StatusCode.InvalidArgument, $"{field} is not valid UTF-8; nothing was done."));
        }

        if (isBroken)
        {
            Explain(type, message);
        }
    }

    /// <summary>Says what the parser, which the package calls, will not accept.</summary>
    private static void Explain(MessageDescriptor type, ReadOnlySequence<byte> message)
    {
        try
        {
            type.Parser.ParseFrom(message);
        }
        catch (InvalidProtocolBufferException e)
        {
            throw Malformed($"The request is no {type.Name}: {e.Message}");
        }
    }

    private ReadOnlySequence<byte> Unpack(ReadOnlySequence<byte> message)
    {
        string? encoding = request.Headers.GrpcEncoding;
        return encoding == "gzip"
            ? MessageFraming.Unpack(message, limits.MessageBytesMax)
            : throw Malformed($"A message is compressed, and the request's grpc-encoding is '{encoding}'.");
    }

    private static RpcException Malformed(string sentence) => new(new Status(StatusCode.Internal, sentence));
}
