using System.Buffers;
using System.IO.Pipelines;
using Google.Protobuf;
using Google.Protobuf.Reflection;
using Grpc.Core;
using Microsoft.AspNetCore.Http.Features;

namespace Kahuna.Server.Api.Calls;

/// <summary>
/// The body of a request as the gRPC package sees it: whole messages, decompressed and with valid text. The bytes of an
/// incomplete message count against the request budgets, and its arrival is timed. Owned by a
/// <see cref="GuardedCall"/>; one reader at a time, <see cref="TimeOut"/> from any thread.
/// </summary>
/// <param name="request">The underlying request.</param>
/// <param name="limits">The limits of a call.</param>
/// <param name="isOnly">Whether the call has a single request. It is then answered as soon as the request is complete,
/// before the caller ends its stream.</param>
/// <param name="type">Type of the messages; null: their text is not checked.</param>
internal sealed class RequestBody(HttpRequest request, CallLimits limits, bool isOnly, MessageDescriptor? type)
    : PipeReader, IRequestBodyPipeFeature
{
    /// <summary>
    /// Memory of a JSON body in multiples of its size: bytes, text of two bytes per character, and the message.
    /// </summary>
    private const int CopiesOfText = 4;

    private volatile IncompleteMessage? _incomplete;
    private RequestReservation? _reservation;
    private long _reservedBytes;
    private SequencePosition? _packedEnd;
    private bool _isTaken;
    private volatile bool _isTimedOut;

    /// <summary>The unframed bytes, for handlers with their own framing.</summary>
    public PipeReader Inner { get; } = request.BodyReader;

    /// <summary>The reader that the package uses.</summary>
    public PipeReader Reader => this;

    /// <summary>Whether a message did not arrive in time.</summary>
    public bool IsTimedOut => _isTimedOut;

    /// <summary>Why the received bytes are not a valid message; else null.</summary>
    public string? Fault { get; set; }

    /// <summary>If set, ends the next read and so the call.</summary>
    public RpcException? Refusal { get; set; }

    /// <summary>The message that is arriving; created at the first wait.</summary>
    public IncompleteMessage Incomplete =>
        _incomplete ??= new IncompleteMessage(Quota?.Incomplete, limits.IncompleteRequests);

    /// <summary>The memory of the call's complete requests.</summary>
    public RequestReservation Reservation =>
        _reservation ??= new RequestReservation(
            Quota?.Waiting ?? new RequestBudget(RequestBudget.ConnectionBytesMax), limits.WaitingRequests);

    /// <summary>Time until the awaited message times out; null if none is awaited. Any thread.</summary>
    public TimeSpan? TimeoutLeft => _incomplete?.TimeLeft(limits.RequestTimeout);

    private ConnectionQuota? Quota => request.HttpContext.Features.Get<ConnectionQuota>();

    /// <summary>Ends a pending read because the message did not arrive in time. Any thread.</summary>
    public void TimeOut()
    {
        _isTimedOut = true;
        try
        {
            Inner.CancelPendingRead();
        }
        catch (IOException)
        {
            // The stream was aborted, so that the read has failed already.
        }
    }

    /// <summary>The status of a call whose message did not arrive in time.</summary>
    public RpcException TimedOut() =>
        new(new Status(
            StatusCode.DeadlineExceeded,
            string.Create(
                System.Globalization.CultureInfo.InvariantCulture,
                $"The request was not complete after {limits.RequestTimeout.TotalSeconds} s.")));

    /// <summary>Ends the call: releases the bytes of its requests.</summary>
    public void End()
    {
        _incomplete?.End();
        _reservation?.Add(-Interlocked.Exchange(ref _reservedBytes, 0));
    }

    /// <summary>Reads the whole body of a request that does not consist of messages.</summary>
    /// <exception cref="RpcException">DEADLINE_EXCEEDED: it does not arrive in time. RESOURCE_EXHAUSTED: it exceeds the
    /// limit or the budget.</exception>
    public async ValueTask<byte[]> ReadWholeAsync(int bytesMax, CancellationToken cancellationToken)
    {
        while (true)
        {
            ValueTask<ReadResult> read = Inner.ReadAsync(cancellationToken);
            if (!read.IsCompleted)
            {
                BeginWait();
            }

            ReadResult result = await read.ConfigureAwait(false);
            ReadOnlySequence<byte> buffer = result.Buffer;
            try
            {
                if (result.IsCanceled)
                {
                    throw TimedOut();
                }

                if (buffer.Length > bytesMax)
                {
                    throw new RpcException(new Status(
                        StatusCode.ResourceExhausted, $"The body is larger than the limit of {bytesMax} bytes."));
                }

                if (result.IsCompleted)
                {
                    _incomplete?.End();
                    Reserve(buffer.Length * CopiesOfText);
                    return buffer.ToArray();
                }

                Incomplete.Begin(buffer.Length);
            }
            finally
            {
                Inner.AdvanceTo(result.IsCompleted ? buffer.End : buffer.Start, buffer.End);
            }
        }
    }

    /// <inheritdoc/>
    public override bool TryRead(out ReadResult result) =>
        throw new NotSupportedException("The gRPC package does not use it.");

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
        BeginWait();
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

    /// <summary>Starts the time of a request that has sent no byte yet.</summary>
    private void BeginWait()
    {
        if (_incomplete is null)
        {
            Incomplete.Begin(0);
        }
    }

    /// <summary>
    /// True if the package may see what was read: a whole message, or the end. Otherwise the bytes were given back, and
    /// the caller reads on.
    /// </summary>
    private bool IsWhole(ref ReadResult result)
    {
        ReadOnlySequence<byte> buffer = result.Buffer;
        try
        {
            if (result.IsCanceled)
            {
                throw _isTimedOut ? TimedOut() : new OperationCanceledException("The call has ended.");
            }

            if (MessageFraming.TryRead(
                ref buffer, limits.MessageBytesMax, out bool compressed, out ReadOnlySequence<byte> message))
            {
                result = Take(in result, message, compressed, isLast: buffer.IsEmpty);
                return true;
            }

            if (result.IsCompleted)
            {
                return buffer.IsEmpty ? true : throw Malformed("The request ended in the middle of a message.");
            }

            Incomplete.Begin(buffer.Length);
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
            Reserve(message.Length);
        }

        Check(message);
        _packedEnd = packedEnd;
        _isTaken = true;
        _incomplete?.End();
        return new ReadResult(whole, isCanceled: false, isCompleted: isOnly || (result.IsCompleted && isLast));
    }

    /// <summary>
    /// Reserves memory for the single request of a call until the call is over. Small requests always fit; the calls of
    /// a connection bound their number.
    /// </summary>
    private void Reserve(long bytes)
    {
        if (bytes <= RequestBudget.SmallBytes)
        {
            return;
        }

        if (!Reservation.Fits(bytes))
        {
            throw new RpcException(new Status(
                StatusCode.ResourceExhausted,
                "The connection or the node has used up its budget for waiting requests; this one was not executed. "
                    + "Try again when others have ended."));
        }

        _reservedBytes = bytes;
        Reservation.Add(bytes);
    }

    private void Check(ReadOnlySequence<byte> message)
    {
        if (type is null)
        {
            return;
        }

        if (Utf8Fields.FirstInvalid(type, message, out bool isBroken) is { } field)
        {
            throw new RpcException(
                new Status(StatusCode.InvalidArgument, $"{field} is not valid UTF-8; nothing was done."));
        }

        if (isBroken)
        {
            Explain(type, message);
        }
    }

    /// <summary>Reports why the package's parser will refuse the message.</summary>
    private static void Explain(MessageDescriptor type, ReadOnlySequence<byte> message)
    {
        try
        {
            type.Parser.ParseFrom(message);
        }
        catch (InvalidProtocolBufferException e)
        {
            throw Malformed($"The request is not a valid {type.Name}: {e.Message}");
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
