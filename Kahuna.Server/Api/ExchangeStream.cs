using System.Buffers;
using System.IO.Pipelines;
using Google.Protobuf;
using Grpc.Core;
using Kahuna.Client.Wire;
using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Commands;
using Kahuna.Client.Wire.Frames;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Openings;
using Kahuna.Server.Partitions;

namespace Kahuna.Server.Api;

/// <summary>
/// One client's framed stream: reads frames of requests and hands them to the door, writes the frames of replies that
/// the loops deliver. The reader is one asynchronous method; replies come from any thread and are written by whoever
/// finds no write under way.
/// </summary>
/// <param name="door">Takes the frames in.</param>
/// <param name="stream">The stream of bytes.</param>
/// <param name="openings">What the connection may begin; null: what it likes.</param>
/// <param name="stop">The node stops.</param>
internal sealed class ExchangeStream(RequestDoor door, RawStream stream, ConnectionOpenings? openings, CancellationToken stop) : ReplySink(door.Router.Loops, door.Room)
{
    /// <summary>Bytes that are copied into the pipe before it is flushed: a frame or so, because what is in the pipe is in memory twice for a moment.</summary>
    private const int FlushBytes = Limits.FrameBytesTarget;

    private readonly RequestHold _hold = stream.Hold;
    private readonly Lock _lock = new();
    private readonly Queue<(ByteBuffer? Frame, int Replies)> _frames = new();
    private readonly SemaphoreSlim _room = new(0, 1);
    private bool _writing;
    private bool _ended;
    private TaskCompletionSource? _idle;
    private int _mapDue;
    private int _inFlight;
    private bool _waitsForRoom;
    private int _flushingBytes;
    private int _flushingReplies;

    /// <summary>Serves the stream until the client ends it, the connection is lost or the node stops.</summary>
    public async Task RunAsync()
    {
        await stream.FlushHeadersAsync().ConfigureAwait(false);
        using IDisposable watch = door.Router.View.WatchRoutes(SendMap);
        using CancellationTokenRegistration stopping = stop.UnsafeRegister(static self => ((ExchangeStream)self!).SendGoAway(), this);
        try
        {
            await ReadFramesAsync().ConfigureAwait(false);
            await DrainAsync().ConfigureAwait(false);
        }
        finally
        {
            await EndAsync().ConfigureAwait(false);
        }
    }

    public override bool IsClosed => Volatile.Read(ref _ended);

    public override string? RefuseOpening(scoped in Command command) => openings?.Refusal(in command);

    public override void HoldRequests(long bytes) => _hold.Add(bytes);

    public override bool HasRoomToHold(long bytes) => _hold.HasRoom(bytes);

    public override void Deliver(ByteBuffer frame, int count)
    {
        Frame.End(frame, count);
        Send(frame, count);
    }

    private async Task ReadFramesAsync()
    {
        bool greeted = false;
        stream.Wait.Begin(0);
        while (true)
        {
            ReadResult result = await stream.Input.ReadAsync().ConfigureAwait(false);
            ReadOnlySequence<byte> buffer = result.Buffer;
            if (result.IsCanceled)
            {
                stream.Input.AdvanceTo(buffer.Start);
                throw new OperationCanceledException("The call has ended.");
            }

            while (RawStream.TryReadMessage(ref buffer, Limits.FrameBytesMax, out ReadOnlySequence<byte> message))
            {
                if (!_hold.HasRoom(message.Length))
                {
                    // A message that waits still counts as incomplete.
                    stream.Wait.Rest();
                    await _hold.WaitForRoomAsync(message.Length, stream.Ended).ConfigureAwait(false);
                }

                stream.Wait.End();
                if (!greeted)
                {
                    Greet(message);
                    greeted = true;
                    continue;
                }

                int count = door.Accept(message, this);
                if (count < 0)
                {
                    throw new RpcException(new Status(StatusCode.InvalidArgument, "A frame is malformed; the stream ends. Nothing of that frame was done."));
                }

                if (Interlocked.Add(ref _inFlight, count) > Limits.InFlightPerStreamMax)
                {
                    await WaitForRoomAsync(Limits.InFlightPerStreamMax).ConfigureAwait(false);
                }
            }

            stream.Input.AdvanceTo(buffer.Start, buffer.End);
            if (result.IsCompleted)
            {
                if (!buffer.IsEmpty)
                {
                    throw new RpcException(new Status(StatusCode.Internal, "The stream ended inside a frame; nothing of that frame was done."));
                }

                return;
            }

            stream.Wait.Begin(buffer.Length);
        }
    }

    private void Greet(ReadOnlySequence<byte> message)
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
            throw new RpcException(new Status(StatusCode.FailedPrecondition, $"The client speaks wire version {version}; this server speaks {Limits.WireVersion}."));
        }

        ByteBuffer hello = ByteBuffer.Rent();
        Frame.Begin(hello, FrameKind.Hello, Limits.WireVersion);
        Frame.End(hello, 0);
        Send(hello, 0);
        SendMap();
        if (stop.IsCancellationRequested)
        {
            SendGoAway();
        }
    }

    /// <summary>Waits until everything that was accepted is answered and written.</summary>
    private Task DrainAsync() => WaitForRoomAsync(0);

    private async Task WaitForRoomAsync(int inFlightMax)
    {
        while (true)
        {
            lock (_lock)
            {
                if (_ended || (Volatile.Read(ref _inFlight) <= inFlightMax && (inFlightMax > 0 || !_writing)))
                {
                    return;
                }

                _waitsForRoom = true;
            }

            await _room.WaitAsync().ConfigureAwait(false);
        }
    }

    private void SendMap()
    {
        // The map is written by the sender when its turn comes, so that a burst of changes is one frame.
        if (Interlocked.Exchange(ref _mapDue, 1) == 0)
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
        door.Router.View.Describe().WriteTo((IBufferWriter<byte>)frame);
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

    /// <summary>Writes what waits. Runs on the sender's thread while the pipe takes it, and goes on by itself when the pipe was full.</summary>
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
            // The connection is gone, in whichever way the host puts it; the reader finds out by itself and ends the call.
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

    /// <summary>What was written is out of this process's hands, or lost with the connection: requests may follow, and reads that waited are answered.</summary>
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
            SignalRoom();
        }

        Left(bytes);
    }

    /// <summary>Copies what waits into the pipe, a part of it at a time. False when there was nothing, and the writer is no longer held, or when the stream has ended.</summary>
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
                        SignalRoom();
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

    private void SignalRoom()
    {
        if (_waitsForRoom)
        {
            _waitsForRoom = false;
            _room.Release();
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

            SignalRoom();
        }

        // Also with nothing to drop: reads may wait for this stream that nobody needs any more.
        Left(bytes);
    }

    /// <summary>Ends the stream and waits until nobody writes any more: the pipe is not ours after the call.</summary>
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
