using System.Buffers;
using System.Collections.Concurrent;
using System.IO.Pipelines;
using Grpc.Core;
using Kahuna.Server.Api.Calls;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Watches;

namespace Kahuna.Server.Api.Watches;

/// <summary>
/// The framed watch stream of one client (docs/wire-format.md). One asynchronous method reads its requests, one frame
/// at a time; the steps of the pump write.
/// </summary>
/// <param name="hub">The node's watches.</param>
/// <param name="stream">The bytes of the stream.</param>
/// <param name="slotMapVersion">The version of the node's map of slots, for the greeting.</param>
/// <param name="stop">Cancelled when the node stops.</param>
/// <param name="access">What may be watched; null: everything.</param>
internal sealed class WatchStream(WatchHub hub, RawStream stream, Func<ulong> slotMapVersion, CancellationToken stop,
    WatchAccess? access = null) : WatchPump(hub, access)
{
    /// <summary>The largest frame of requests.</summary>
    private const int FrameBytesMax = Limits.FrameBytesTarget + (64 * 1024);

    private readonly ConcurrentQueue<ByteBuffer> _own = new();
    private readonly SemaphoreSlim _taken = new(0, 1);
    private ByteBuffer? _requests;
    private int _offset;
    private int _left;
    private Exception? _failure;

    /// <summary>Serves the stream until the client ends it, the connection is lost or the node stops.</summary>
    public async Task RunAsync()
    {
        await stream.FlushHeadersAsync().ConfigureAwait(false);
        Join();
        using CancellationTokenRegistration stopping = stop.UnsafeRegister(
            static self => ((WatchStream)self!).SendGoAway(), this);
        try
        {
            await ReadFramesAsync().ConfigureAwait(false);
            await SayAllAsync().ConfigureAwait(false);
        }
        finally
        {
            await EndAsync().ConfigureAwait(false);
            while (_own.TryDequeue(out ByteBuffer? frame))
            {
                frame.Return();
            }

            Interlocked.Exchange(ref _requests, null)?.Return();
        }
    }

    /// <inheritdoc/>
    protected override bool TakeRequests(WatchReader reader)
    {
        if (Volatile.Read(ref _requests) is not { } requests)
        {
            return true;
        }

        ReadOnlySpan<byte> rest = requests.Written[_offset..];
        while (_left > 0 && reader.MayTake && _failure is null)
        {
            string? violation = WatchRequest.TryRead(ref rest, out WatchRequest request)
                ? reader.Take(in request) : "A watch request is malformed, so the stream ends.";
            _left--;
            if (violation is not null)
            {
                _failure = new RpcException(new Status(StatusCode.InvalidArgument, violation));
            }
        }

        _offset = requests.Length - rest.Length;
        if (_left > 0 && _failure is null)
        {
            return true;
        }

        if (!rest.IsEmpty)
        {
            _failure ??= new RpcException(new Status(
                StatusCode.InvalidArgument, "A frame is longer than its watch requests, so the stream ends."));
        }

        Volatile.Write(ref _requests, null);
        requests.Return();
        _taken.Release();
        return _failure is null;
    }

    /// <inheritdoc/>
    protected override int WriteOwn()
    {
        int bytes = 0;
        while (_own.TryDequeue(out ByteBuffer? frame))
        {
            bytes += frame.Length;
            Write(frame);
            frame.Return();
        }

        return bytes;
    }

    /// <inheritdoc/>
    protected override void Write(ByteBuffer frame) => stream.Output.Write(frame.Written);

    /// <inheritdoc/>
    protected override ValueTask<bool> SendAsync()
    {
        ValueTask<FlushResult> flush = stream.FlushAsync();
        return flush.IsCompletedSuccessfully ? new(IsOpen(flush.Result)) : WaitAsync(flush);
    }

    /// <inheritdoc/>
    protected override void CancelSending() => stream.Output.CancelPendingFlush();

    /// <inheritdoc/>
    protected override void OnFailed(Exception error)
    {
        // The connection is gone, or this is a bug: the reading side ends the call, with this error if it has none.
        _failure ??= error;
        stream.Input.CancelPendingRead();
        if (Volatile.Read(ref _requests) is not null && _taken.CurrentCount == 0)
        {
            _taken.Release();
        }
    }

    private static async ValueTask<bool> WaitAsync(ValueTask<FlushResult> flush) =>
        IsOpen(await flush.ConfigureAwait(false));

    private static bool IsOpen(FlushResult result) => !result.IsCompleted && !result.IsCanceled;

    private async Task ReadFramesAsync()
    {
        bool greeted = false;
        stream.Incomplete.Begin(0);
        while (true)
        {
            ReadResult result = await stream.Input.ReadAsync().ConfigureAwait(false);
            ReadOnlySequence<byte> buffer = result.Buffer;
            if (result.IsCanceled)
            {
                stream.Input.AdvanceTo(buffer.Start);
                throw _failure ?? new OperationCanceledException("The call has ended.");
            }

            while (RawStream.TryReadMessage(ref buffer, FrameBytesMax, out ReadOnlySequence<byte> message))
            {
                stream.Incomplete.End();
                if (!greeted)
                {
                    Greet(message);
                    greeted = true;
                    continue;
                }

                await PassOnAsync(message).ConfigureAwait(false);
            }

            stream.Input.AdvanceTo(buffer.Start, buffer.End);
            if (result.IsCompleted)
            {
                return;
            }

            stream.Incomplete.Begin(buffer.Length);
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
            throw new RpcException(new Status(
                StatusCode.FailedPrecondition,
                $"The client speaks wire version {version}; this server speaks {Limits.WireVersion}."));
        }

        ByteBuffer hello = ByteBuffer.Rent();
        Frame.WriteServerHello(hello, slotMapVersion());
        _own.Enqueue(hello);
        Wake();
    }

    private void SendGoAway()
    {
        ByteBuffer frame = ByteBuffer.Rent();
        Frame.Begin(frame, FrameKind.GoAway);
        Frame.End(frame, 0);
        _own.Enqueue(frame);
        Wake();
    }

    /// <summary>Gives a frame of requests to the pump and waits until it is taken.</summary>
    private async Task PassOnAsync(ReadOnlySequence<byte> message)
    {
        if (!stream.Reservation.Fits(message.Length))
        {
            stream.Incomplete.StopTimer();
            await stream.Reservation.WaitUntilFitsAsync(message.Length, stream.Ended).ConfigureAwait(false);
        }

        ByteBuffer requests = ByteBuffer.Rent((int)message.Length);
        message.CopyTo(requests.Take((int)message.Length));
        if (!Frame.TryGetPayload(requests.Written, out ReadOnlySpan<byte> payload)
            || !Frame.TryReadHeader(payload, out FrameKind kind, out _, out _left)
            || kind != FrameKind.WatchRequests)
        {
            requests.Return();
            throw new RpcException(new Status(
                StatusCode.InvalidArgument,
                "A frame is malformed, so the stream ends; none of the frame's requests was carried out."));
        }

        _offset = requests.Length - payload.Length + Frame.HeaderBytes;
        int length = requests.Length;
        stream.Reservation.Add(length);
        try
        {
            Volatile.Write(ref _requests, requests);
            Wake();
            await _taken.WaitAsync(stream.Ended).ConfigureAwait(false);
            if (_failure is not null)
            {
                throw _failure;
            }
        }
        finally
        {
            stream.Reservation.Add(-length);
        }
    }
}
