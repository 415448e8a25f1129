using System.Buffers;
using System.Buffers.Binary;
using System.IO.Pipelines;
using Google.Protobuf;
using Grpc.Core;
using Kahuna.Server.Access;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.RateLimits;
using Kahuna.Server.Cluster;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Checks;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Api;

/// <summary>
/// The framed stream of one client: passes request frames to the admission and writes the reply frames that the loops
/// deliver. One asynchronous method reads. Any thread delivers replies; it also writes them unless another thread is
/// writing.
/// </summary>
/// <param name="admission">Accepts the frames.</param>
/// <param name="stream">The bytes of the stream.</param>
/// <param name="rateLimiter">Limits the sessions that the connection opens; null: no limit.</param>
/// <param name="stop">Cancelled when the node stops.</param>
/// <param name="caller">Whose stream it is; null: nobody has said so.</param>
internal sealed class ExchangeStream(RequestAdmission admission, RawStream stream,
    ConnectionRateLimiter? rateLimiter, CancellationToken stop, Caller? caller = null)
    : ReplySink(admission.Router.Loops, admission.Room)
{
    /// <summary>
    /// Bytes to copy into the pipe before a flush. About one frame, because bytes in the pipe are in memory twice until
    /// the flush.
    /// </summary>
    private const int FlushBytes = Limits.FrameBytesTarget;

    private readonly RequestReservation _reservation = stream.Reservation;
    private readonly Lock _lock = new();
    private readonly Queue<(ByteBuffer? Frame, int Replies)> _frames = new();
    private readonly SemaphoreSlim _repliesLeft = new(0, 1);
    private volatile bool _greeted;
    private bool _writing;
    private bool _ended;
    private TaskCompletionSource? _idle;
    private int _mapDue;
    private int _inFlight;
    private bool _waitsForReplies;
    private int _flushingBytes;
    private int _flushingReplies;

    /// <summary>Serves the stream until the client ends it, the connection is lost or the node stops.</summary>
    public async Task RunAsync()
    {
        await stream.FlushHeadersAsync().ConfigureAwait(false);
        using IDisposable watch = admission.Router.View.WatchRoutes(SendMap);
        using CancellationTokenRegistration stopping = stop.UnsafeRegister(
            static self => ((ExchangeStream)self!).SendGoAway(), this);
        using IDisposable? rights = admission.Gate?.Access.Watch(LookAtCaller);
        try
        {
            await ReadFramesAsync().ConfigureAwait(false);
            // Every accepted request is answered, and its reply is written.
            await WaitForRepliesAsync(0).ConfigureAwait(false);
        }
        finally
        {
            await EndAsync().ConfigureAwait(false);
        }
    }

    public override bool IsClosed => Volatile.Read(ref _ended);

    public override string? RefuseOpening(scoped in Command command) => rateLimiter?.Refusal(in command);

    public override void HoldRequests(long bytes) => _reservation.Add(bytes);

    public override bool HasRoomToHold(long bytes) => _reservation.Fits(bytes);

    public override void Deliver(ByteBuffer frame, int count)
    {
        Frame.End(frame, count);
        Send(frame, count);
    }

    /// <summary>The caller's identity no longer holds: the stream ends. What is under way is answered.</summary>
    private void LookAtCaller()
    {
        if (caller?.End is not null)
        {
            stream.Input.CancelPendingRead();
        }
    }

    private async Task ReadFramesAsync()
    {
        stream.Incomplete.Begin(0);
        while (true)
        {
            ReadResult result = await stream.Input.ReadAsync().ConfigureAwait(false);
            ReadOnlySequence<byte> buffer = result.Buffer;
            if (result.IsCanceled)
            {
                stream.Input.AdvanceTo(buffer.Start);
                throw Ended();
            }

            while (RawStream.TryReadMessage(ref buffer, Limits.FrameBytesMax, out ReadOnlySequence<byte> message))
            {
                if (!_reservation.Fits(message.Length))
                {
                    // The bytes of a message that waits for budget still count as incomplete.
                    stream.Incomplete.StopTimer();
                    await _reservation.WaitUntilFitsAsync(message.Length, stream.Ended).ConfigureAwait(false);
                }

                stream.Incomplete.End();
                if (!_greeted)
                {
                    ReadHello(message);
                    continue;
                }

                int count = admission.Accept(message, this, caller);
                if (count < 0)
                {
                    throw new RpcException(new Status(
                        StatusCode.InvalidArgument,
                        "A frame is malformed, so the stream ends; none of the frame's requests was executed."));
                }

                if (Interlocked.Add(ref _inFlight, count) > Limits.InFlightPerStreamMax)
                {
                    await WaitForRepliesAsync(Limits.InFlightPerStreamMax).ConfigureAwait(false);
                }
            }

            stream.Input.AdvanceTo(buffer.Start, buffer.End);
            if (result.IsCompleted)
            {
                if (!buffer.IsEmpty)
                {
                    throw new RpcException(new Status(
                        StatusCode.Internal,
                        "The stream ended inside a frame; none of the frame's requests was executed."));
                }

                return;
            }

            stream.Incomplete.Begin(buffer.Length);
        }
    }

    private Exception Ended() => caller?.End is { } end
        ? new RpcException(new Status(StatusCode.Unauthenticated, end))
        : new OperationCanceledException("The call has ended.");

    private void ReadHello(ReadOnlySequence<byte> message)
    {
        byte[] bytes = message.ToArray();
        if (!Frame.TryGetPayload(bytes, out ReadOnlySpan<byte> payload)
            || !Frame.TryReadHeader(payload, out FrameKind kind, out ushort version, out _)
            || kind != FrameKind.Hello)
        {
            throw new RpcException(new Status(StatusCode.InvalidArgument, "The first frame must be Hello."));
        }

        if (version != Limits.WireVersion)
        {
            throw new RpcException(new Status(
                StatusCode.FailedPrecondition,
                $"The client speaks wire version {version}; this server speaks {Limits.WireVersion}."));
        }

        ByteBuffer hello = ByteBuffer.Rent();
        Frame.WriteServerHello(hello, admission.Router.View.Slots.Version);
        Send(hello, 0);
        _greeted = true;
        SendMap();
        if (stop.IsCancellationRequested)
        {
            SendGoAway();
        }
    }

    private async Task WaitForRepliesAsync(int inFlightMax)
    {
        while (true)
        {
            lock (_lock)
            {
                if (_ended || (Volatile.Read(ref _inFlight) <= inFlightMax && (inFlightMax > 0 || !_writing)))
                {
                    return;
                }

                _waitsForReplies = true;
            }

            await _repliesLeft.WaitAsync().ConfigureAwait(false);
        }
    }

    private void SendMap()
    {
        // The greeting comes first. The writer encodes the map when it gets there: a burst of changes costs one frame.
        if (_greeted && Interlocked.Exchange(ref _mapDue, 1) == 0)
        {
            Send(null, 0);
        }
    }

    private void SendGoAway()
    {
        ByteBuffer frame = ByteBuffer.Rent();
        Frame.Begin(frame, FrameKind.GoAway);
        Frame.End(frame, 0);
        Send(frame, 0);
    }

    private ByteBuffer MapFrame()
    {
        ByteBuffer frame = ByteBuffer.Rent();
        Frame.Begin(frame, FrameKind.Map);
        admission.Router.View.Describe().WriteTo((IBufferWriter<byte>)frame);
        Frame.End(frame, 1);
        return frame;
    }

    private void Send(ByteBuffer? frame, int replies)
    {
        lock (_lock)
        {
            if (_ended)
            {
                frame?.Return();
                return;
            }

            if (frame is not null)
            {
                Waits(frame.Length);
                _frames.Enqueue((frame, replies));
            }

            if (_writing)
            {
                return;
            }

            _writing = true;
        }

        WriteQueued();
    }

    /// <summary>
    /// Writes the queued frames. Runs on the sender's thread, and continues asynchronously when the pipe is full.
    /// </summary>
    private async void WriteQueued()
    {
        bool holds = true;
        try
        {
            while (TakeQueued(ref holds))
            {
                ValueTask<FlushResult> flush = stream.FlushAsync();
                FlushResult result = flush.IsCompletedSuccessfully ? flush.Result : await flush.ConfigureAwait(false);
                Flushed();
                if (result.IsCompleted || result.IsCanceled)
                {
                    End();
                }
            }
        }
        catch (Exception error) when (error is not OutOfMemoryException)
        {
            // The connection is gone. The reader notices by itself and ends the call.
            End();
        }

        if (holds)
        {
            Flushed();
            lock (_lock)
            {
                _writing = false;
                _idle?.TrySetResult();
            }
        }
    }

    /// <summary>
    /// Releases the flushed bytes: they have left this process or are lost with the connection. The reader may
    /// continue, and reads that waited for reply budget are answered.
    /// </summary>
    private void Flushed()
    {
        int bytes = _flushingBytes;
        if (bytes == 0)
        {
            return;
        }

        Interlocked.Add(ref _inFlight, -_flushingReplies);
        (_flushingBytes, _flushingReplies) = (0, 0);
        lock (_lock)
        {
            SignalReplies();
        }

        Left(bytes);
    }

    /// <summary>
    /// Copies a part of the queued frames into the pipe. False if the queue was empty, which ends this writer, or if
    /// the stream has ended.
    /// </summary>
    private bool TakeQueued(ref bool holds)
    {
        bool any = false;
        while (_flushingBytes < FlushBytes)
        {
            (ByteBuffer? Frame, int Replies) next;
            lock (_lock)
            {
                if (_ended)
                {
                    return false;
                }

                if (!_frames.TryDequeue(out next) && Volatile.Read(ref _mapDue) == 0)
                {
                    if (!any)
                    {
                        _writing = false;
                        holds = false;
                        SignalReplies();
                    }

                    return any;
                }
            }

            if (next.Frame is null)
            {
                Volatile.Write(ref _mapDue, 0);
                next.Frame = MapFrame();
                Waits(next.Frame.Length);
            }

            _flushingBytes += next.Frame.Length;
            _flushingReplies += next.Replies;
            stream.Output.Write(next.Frame.Written);
            next.Frame.Return();
            any = true;
        }

        return true;
    }

    private void SignalReplies()
    {
        if (_waitsForReplies)
        {
            _waitsForReplies = false;
            _repliesLeft.Release();
        }
    }

    private void End()
    {
        int bytes = 0;
        lock (_lock)
        {
            _ended = true;
            while (_frames.TryDequeue(out (ByteBuffer? Frame, int Replies) next))
            {
                bytes += next.Frame!.Length;
                next.Frame.Return();
            }

            SignalReplies();
        }

        // Needed even when nothing was dropped: reads that this stream no longer needs may wait for reply budget.
        Left(bytes);
    }

    /// <summary>Ends the stream and waits for the writer: the pipe must not be used after the call.</summary>
    private Task EndAsync()
    {
        End();
        lock (_lock)
        {
            if (!_writing)
            {
                return Task.CompletedTask;
            }

            _idle = new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously);
        }

        stream.Output.CancelPendingFlush();
        return _idle.Task;
    }
}

/// <summary>
/// Hop 3: admits operations. Checks every command first; a malformed one is answered here and never reaches a
/// partition. Any thread.
/// </summary>
internal sealed class RequestAdmission(Router router, int valueBytesMax)
{
    /// <summary>The node's budget for unsent replies.</summary>
    public ReplyRoom Room { get; init; } = new();

    public Router Router => router;

    public int ValueBytesMax => valueBytesMax;

    /// <summary>
    /// Forwards requests to the leader when their clients ask for it; null: handles them like all others. Set once,
    /// before the first frame.
    /// </summary>
    public Action<ForwardedRequest>? Forward { get; set; }

    /// <summary>Decides whether callers' commands may go on; null: all may.</summary>
    public AccessGate? Gate { get; init; }

    /// <summary>
    /// Accepts a Requests frame (a gRPC message body): copies it once, checks each command and posts the valid ones.
    /// Returns the number of operations that will be answered, or -1 if the frame is malformed and nothing was done.
    /// </summary>
    public int Accept(ReadOnlySequence<byte> message, ReplySink sink, Caller? caller = null)
    {
        ByteBuffer buffer = ByteBuffer.Rent((int)message.Length);
        message.CopyTo(buffer.Take((int)message.Length));
        ClientBatch batch = router.Begin(buffer, sink);
        ByteBuffer? refusals = null;
        int refused = 0;
        AccessPass pass = Gate?.Look(caller) ?? default;
        int count = Split(batch, in pass, ref refusals, ref refused);
        if (count < 0)
        {
            refusals?.Return();
            batch.Release();
            return -1;
        }

        if (refusals is not null)
        {
            sink.Deliver(refusals, refused);
        }

        foreach (ClientOperation operation in batch.Forwarded)
        {
            byte[] command = batch.Command(operation).ToArray();
            Forward!(new ForwardedRequest(command, operation.Number.Number, operation.WaitMs, sink));
        }

        if (batch.Operations.Length > 0)
        {
            router.Route(batch);
        }
        else
        {
            batch.Release();
        }

        return count;
    }

    /// <summary>
    /// Accepts one command of a unary call and takes ownership of the buffer. True if it was posted, with a copy of the
    /// bytes that were, which are as many; otherwise status and sentence of the refusal.
    /// </summary>
    public bool AcceptOne(ByteBuffer buffer, ReplySink sink, uint waitMs, Caller? caller, Span<byte> accepted,
        out (OutcomeStatus Status, string? Sentence) refusal)
    {
        AccessPass pass = Gate?.Look(caller) ?? default;
        bool reads = Command.TryRead(buffer.Written, out Command command);
        refusal = (OutcomeStatus.InvalidArgument, "The command is malformed.");
        if (!reads
            || !IsGood(in command, out refusal.Status, out refusal.Sentence)
            || (refusal.Sentence =
                pass.Admit(in command, buffer.Array.AsSpan(0, buffer.Length), out refusal.Status)) is not null)
        {
            buffer.Return();
            return false;
        }

        buffer.Written.CopyTo(accepted);
        ClientBatch batch = router.Begin(buffer, sink);
        batch.Add(new ClientOperation(0, buffer.Length, 0, waitMs, router.GroupIndexOf(in command), command.IsRead));
        router.Route(batch);
        return true;
    }

    private bool IsGood(scoped in Command command, out OutcomeStatus status, out string? sentence)
    {
        if (!CommandCheck.IsGood(in command, valueBytesMax, out status, out sentence))
        {
            return false;
        }

        status = (sentence = router.RefuseSpread(in command)) is null ? default : OutcomeStatus.InvalidArgument;
        return sentence is null;
    }

    private int Split(ClientBatch batch, in AccessPass pass, ref ByteBuffer? refusals, ref int refused)
    {
        ReadOnlySpan<byte> message = batch.Buffer.Written;
        if (!Frame.TryGetPayload(message, out ReadOnlySpan<byte> payload)
            || !Frame.TryReadHeader(payload, out FrameKind kind, out _, out int count)
            || kind != FrameKind.Requests
            || count > Limits.InFlightPerStreamMax)
        {
            return -1;
        }

        int at = message.Length - payload.Length + Frame.HeaderBytes;
        for (int i = 0; i < count; i++)
        {
            if (message.Length - at < Frame.RequestHeaderBytes)
            {
                return -1;
            }

            uint number = BinaryPrimitives.ReadUInt32LittleEndian(message[at..]);
            uint waitMs = BinaryPrimitives.ReadUInt32LittleEndian(message[(at + 4)..]);
            uint length = BinaryPrimitives.ReadUInt32LittleEndian(message[(at + 8)..]);
            at += Frame.RequestHeaderBytes;
            if (length > (uint)(message.Length - at))
            {
                return -1;
            }

            ClientOperation operation = new(at, (int)length, number, waitMs, 0, false);
            Admit(batch, in operation, in pass, ref refusals, ref refused);
            at += (int)length;
        }

        return at == message.Length ? count : -1;
    }

    private void Admit(ClientBatch batch, in ClientOperation operation, in AccessPass pass, ref ByteBuffer? refusals,
        ref int refused)
    {
        OutcomeStatus status = OutcomeStatus.InvalidArgument;
        string? sentence = "The command is malformed.";
        if (Command.TryRead(batch.Command(operation), out Command command)
            && IsGood(in command, out status, out sentence))
        {
            sentence = pass.Passes(in command) ? null : pass.Admit(in command, batch.Command(in operation), out status);
            if (sentence is null)
            {
                sentence = batch.Sink.RefuseOpening(in command);
                if (sentence is null)
                {
                    Collect(batch, in operation, in command);
                    return;
                }

                status = OutcomeStatus.Busy;
            }
        }

        if (refusals is null)
        {
            refusals = ByteBuffer.Rent();
            Frame.Begin(refusals, FrameKind.Replies);
        }

        int at = refusals.Length;
        Frame.BeginReply(refusals, operation.Number.Number);
        router.Refusals.Add(status);
        AccessPass.WriteRefusal(refusals, status, sentence!);
        Frame.EndReply(refusals, at);
        refused++;
    }

    private void Collect(ClientBatch batch, in ClientOperation operation, scoped in Command command)
    {
        uint waitMs = operation.WaitMs & ~Frame.ForwardFlag;
        if (waitMs != operation.WaitMs && Forward is not null)
        {
            batch.Forwarded.Add(operation with { WaitMs = waitMs });
        }
        else
        {
            ushort group = router.GroupIndexOf(in command);
            batch.Add(operation with { WaitMs = waitMs, GroupIndex = group, IsRead = command.IsRead });
        }
    }
}
