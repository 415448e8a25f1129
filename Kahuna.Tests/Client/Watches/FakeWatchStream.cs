using System.Collections.Concurrent;
using System.IO.Pipelines;
using System.Text;
using Kahuna.Client.Connection;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Watches;
using Frame = Kahuna.Wire.Frames.Frame;

namespace Kahuna.Tests.Client.Watches;

/// <summary>
/// A stream of watches to a <see cref="FakeNode"/>: the client's port, and a node that says what the test says. Owned
/// by the node; any thread sends.
/// </summary>
internal sealed class FakeWatchStream(FakeNode node) : IFrameStream
{
    private readonly Pipe _toClient = new(
        new PipeOptions(pauseWriterThreshold: 1 << 30, resumeWriterThreshold: 1 << 29));
    private readonly Lock _sending = new();
    private readonly CancellationTokenSource _end = new();

    /// <summary>The watches that were asked for and not ended.</summary>
    public ConcurrentDictionary<uint, AskedWatch> Watches { get; } = new();

    /// <summary>Requests that were received.</summary>
    public int Requests;

    public FakeNode Node => node;

    public bool IsEnded => _end.IsCancellationRequested;

    /// <summary>The id of the watch of a name.</summary>
    public uint IdOf(string name) => Watches.Values.Single(watch => watch.Name == name).Id;

    public void Notice(
        WatchNoticeCode code, uint watch, ChangePoint point = default, uint status = 0, string text = "") =>
        Send(FrameKind.Notices, WatchFrames.Notice(code, watch, point, status, text), 1);

    public void Changes(params ReadOnlySpan<SentChange> changes) =>
        Send(FrameKind.Changes, WatchFrames.Changes(changes), changes.Length);

    public void Progress(ChangePoint point, uint behindMs = 0) =>
        Send(FrameKind.Progress, WatchFrames.Progress(new WatchProgress(point, behindMs)), 1);

    public void GoAway() => Send(FrameKind.GoAway, [], 0);

    /// <inheritdoc/>
    public StreamStatus? EndStatus { get; private set; }

    /// <summary>The node ends the stream with a status.</summary>
    public void End(StreamStatus status)
    {
        EndStatus = status;
        _toClient.Writer.Complete();
    }

    /// <summary>The stream breaks.</summary>
    public void Break()
    {
        _toClient.Writer.Complete(new IOException("connection reset"));
        _end.Cancel();
    }

    public void Send(FrameKind kind, byte[] body, int count, ushort version = 0)
    {
        ByteBuffer frame = ByteBuffer.Rent();
        Frame.Begin(frame, kind, version);
        frame.Append(body);
        Frame.End(frame, count);
        lock (_sending)
        {
            if (!IsEnded)
            {
                _toClient.Writer.WriteAsync(frame.WrittenMemory).AsTask().Wait();
            }
        }

        frame.Return();
    }

    /// <inheritdoc/>
    public ValueTask WriteAsync(ReadOnlyMemory<byte> messages)
    {
        _end.Token.ThrowIfCancellationRequested();
        Assert.True(Frame.TryGetPayload(messages.Span[Frame.GrpcPrefixBytes..], out ReadOnlySpan<byte> payload));
        Assert.True(Frame.TryReadHeader(payload, out FrameKind kind, out ushort version, out int count));
        if (kind == FrameKind.Hello)
        {
            Assert.Equal(Limits.WireVersion, version);
            Send(FrameKind.Hello, [], 0, node.Version);
            return ValueTask.CompletedTask;
        }

        Assert.Equal(FrameKind.WatchRequests, kind);
        ReadOnlySpan<byte> body = payload[Frame.HeaderBytes..];
        for (int i = 0; i < count; i++)
        {
            Assert.True(WatchRequest.TryRead(ref body, out WatchRequest request));
            Interlocked.Increment(ref Requests);
            if (request.Operation == WatchOperation.End)
            {
                Assert.True(Watches.TryRemove(request.Id, out _));
                continue;
            }

            ChangePoint[] points = new ChangePoint[request.PointCount];
            for (int p = 0; p < points.Length; p++)
            {
                points[p] = request.Point(p);
            }

            AskedWatch asked = new(
                request.Id,
                request.Durability,
                request.Scope,
                request.Flags,
                Encoding.UTF8.GetString(request.Name),
                points);
            Assert.True(Watches.TryAdd(asked.Id, asked));
            node.OnWatch?.Invoke(this, asked);
        }

        Assert.True(body.IsEmpty);
        return ValueTask.CompletedTask;
    }

    /// <inheritdoc/>
    public async ValueTask<int> ReadAsync(Memory<byte> buffer)
    {
        ReadResult result = await _toClient.Reader.ReadAsync(_end.Token).ConfigureAwait(false);
        int count = (int)Math.Min(buffer.Length, result.Buffer.Length);
        System.Buffers.BuffersExtensions.CopyTo(result.Buffer.Slice(0, count), buffer.Span);
        _toClient.Reader.AdvanceTo(result.Buffer.GetPosition(count));
        return count;
    }

    /// <inheritdoc/>
    public ValueTask<string?> EndReasonAsync() => new("the fake node ended the stream");

    /// <inheritdoc/>
    public void Abort() => _end.Cancel();

    /// <inheritdoc/>
    public ValueTask DisposeAsync()
    {
        Abort();
        return ValueTask.CompletedTask;
    }
}

/// <summary>A watch as a <see cref="FakeNode"/> was asked for it. Immutable.</summary>
internal sealed record AskedWatch(
    uint Id, Durability Durability, WatchScope Scope, WatchFlags Flags, string Name, ChangePoint[] Points);
