using System.Buffers;
using System.Diagnostics;
using System.IO.Pipelines;
using Google.Protobuf;
using Grpc.Core;
using Kahuna.Server.Access;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.RateLimits;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Sockets;

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
/// <param name="links">Offers a direct link; null: the client wants none.</param>
internal sealed class ExchangeStream(RequestAdmission admission, RawStream stream,
    ConnectionRateLimiter? rateLimiter, CancellationToken stop, Caller? caller = null, LinkOffers? links = null)
    : ReplySink(admission.Router.Loops, admission.Room)
{
    /// <summary>
    /// Bytes to copy into the pipe before a flush. About one frame, because bytes in the pipe are in memory twice until
    /// the flush.
    /// </summary>
    private const int FlushBytes = Limits.FrameBytesTarget;

    /// <summary>
    /// Most bytes in a row that the thread of a sender, which may run a loop, writes to a link whose client takes them
    /// at once. The pool writes the rest.
    /// </summary>
    private const int LinkBytesInRow = FlushBytes;

    private readonly RequestReservation _reservation = stream.Reservation;
    private readonly Lock _lock = new();
    private readonly Queue<(ByteBuffer? Frame, int Replies)> _frames = new();
    private readonly SemaphoreSlim _repliesLeft = new(0, 1);
    private readonly DirectCarrier _carrier = new();
    private StreamTraces? _traces;
    private string? _ticket;
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
        _ticket = links?.Offer(Carry);
        await stream.FlushHeadersAsync(_ticket is null ? null : new(DirectLinkProtocol.Header, _ticket))
            .ConfigureAwait(false);
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
            Withdraw();
            End();
            await _carrier.EndAsync().ConfigureAwait(false);
            await EndAsync().ConfigureAwait(false);
            _carrier.Release();
        }
    }

    /// <summary>Serves the stream over a link, on its thread.</summary>
    private void Carry(DirectConnection link)
    {
        DirectReader reader = new(link, stream, message => TakeFromAsync(link, message), _carrier.Ended);
        _carrier.Run(link, reader.Run, stream);
    }

    private ValueTask TakeFromAsync(DirectConnection link, ReadOnlySequence<byte> message) => _carrier.Carries(link)
        ? TakeAsync(message) : throw new IOException("The stream's frames come on its call.");

    public override bool IsClosed => Volatile.Read(ref _ended);

    public override string? RefuseOpening(scoped in Command command) => rateLimiter?.Refusal(in command);

    public override void HoldRequests(long bytes) => _reservation.Add(bytes);

    public override bool HasRoomToHold(long bytes) => _reservation.Fits(bytes);

    public override bool TakeTraces(ReadOnlySpan<byte> items, int count)
    {
        if (admission.Traces?.Contexts is not { IsOn: true } traces)
        {
            return StreamTraces.IsGood(items, count);
        }

        _traces ??= new StreamTraces(traces);
        bool isGood = _traces.Take(items, count);
        HasTraces = _traces.Any;
        return isGood;
    }

    public override ushort TraceOf(uint number) => _traces!.TraceOf(number);

    public override ActivityContext TracedParent(uint number) => _traces!.ParentOf(number);

    public override void EndTraces()
    {
        _traces!.Clear();
        HasTraces = false;
    }

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
            stream.CancelRead();
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

            // From the first byte on: the call's limits are kept by one reader.
            if (!buffer.IsEmpty && !_carrier.Carries(null))
            {
                throw new RpcException(new Status(
                    StatusCode.InvalidArgument, "The stream's frames come on its direct link; it cannot change back."));
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
                await TakeAsync(message).ConfigureAwait(false);
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

    /// <summary>Takes in a whole message. Completes when the next one may be read.</summary>
    private ValueTask TakeAsync(ReadOnlySequence<byte> message)
    {
        if (!_greeted)
        {
            // The place is for another client, if this one has come without its link.
            Withdraw();
            ReadHello(message);
            return ValueTask.CompletedTask;
        }

        int count = admission.Accept(message, this, caller);
        if (count < 0)
        {
            throw new RpcException(new Status(
                StatusCode.InvalidArgument,
                "A frame is malformed, so the stream ends; none of the frame's requests was executed."));
        }

        return Interlocked.Add(ref _inFlight, count) > Limits.InFlightPerStreamMax
            ? new ValueTask(WaitForRepliesAsync(Limits.InFlightPerStreamMax)) : ValueTask.CompletedTask;
    }

    private void Withdraw()
    {
        if (_ticket is not null)
        {
            links!.Withdraw(_ticket);
        }
    }

    private Exception Ended() => _carrier.Failure ?? (caller?.End is { } end
        ? new RpcException(new Status(StatusCode.Unauthenticated, end))
        : new OperationCanceledException("The call has ended."));

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
    /// Writes the queued frames. Runs on the sender's thread, and continues asynchronously when the pipe or the socket
    /// is full.
    /// </summary>
    private async void WriteQueued()
    {
        bool holds = true;
        int inRow = 0;
        try
        {
            while (TakeQueued(ref holds))
            {
                bool goesOn = true;
                if (_carrier.Link is { } link)
                {
                    inRow += _flushingBytes;
                    Task flush = link.FlushAsync();
                    if (!flush.IsCompletedSuccessfully)
                    {
                        await stream.AwaitFlushAsync(flush).ConfigureAwait(false);
                    }
                    else if (inRow >= LinkBytesInRow)
                    {
                        await flush.ConfigureAwait(ConfigureAwaitOptions.ForceYielding);
                        inRow = 0;
                    }
                }
                else
                {
                    ValueTask<FlushResult> flush = stream.FlushAsync();
                    FlushResult result =
                        flush.IsCompletedSuccessfully ? flush.Result : await flush.ConfigureAwait(false);
                    goesOn = !result.IsCompleted && !result.IsCanceled;
                }

                Flushed();
                if (!goesOn)
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
            if (_carrier.Link is { } link)
            {
                link.Write(next.Frame.Written);
            }
            else
            {
                stream.Output.Write(next.Frame.Written);
            }

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
