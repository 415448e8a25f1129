using System.Buffers.Binary;
using System.IO.Pipelines;
using Google.Protobuf;
using Kahuna.Client.Connection;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Outcomes;
using Frame = Kahuna.Wire.Frames.Frame;

namespace Kahuna.Tests.Client;

/// <summary>
/// One stream to a <see cref="FakeNode"/>, both sides of it: the client's port, and the node that reads frames and
/// answers. Owned by the node; any thread sends.
/// </summary>
internal sealed class FakeConnection : IFrameStream
{
    private readonly Pipe _toNode = new(new PipeOptions(pauseWriterThreshold: 1 << 30, resumeWriterThreshold: 1 << 29));
    private readonly Pipe _toClient = new(
        new PipeOptions(pauseWriterThreshold: 1 << 30, resumeWriterThreshold: 1 << 29));
    private readonly Lock _sending = new();
    private readonly FakeNode _node;
    private readonly CancellationTokenSource _end = new();
    private TaskCompletionSource _writable = Completed();

    /// <summary>Frames that the client has begun to write.</summary>
    public int WritesBegun;

    public FakeConnection(FakeNode node)
    {
        _node = node;
        _ = ServeAsync();
    }

    public FakeNode Node => _node;

    public bool IsEnded => _end.IsCancellationRequested;

    /// <summary>The client's writes wait from now on.</summary>
    public void StopTaking() =>
        _writable = new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously);

    /// <summary>The client's writes go on.</summary>
    public void TakeAgain() => _writable.TrySetResult();

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

    public void Reply(FakeRequest request, FakeReply reply) => Reply([(request, reply)]);

    /// <summary>One frame with all replies.</summary>
    public void Reply(IReadOnlyList<(FakeRequest Request, FakeReply Reply)> replies)
    {
        ByteBuffer frame = ByteBuffer.Rent();
        Frame.Begin(frame, FrameKind.Replies);
        foreach ((FakeRequest request, FakeReply reply) in replies)
        {
            int at = frame.Length;
            Frame.BeginReply(frame, request.Number);
            new Outcome(reply.Status, reply.Revision, reply.Number)
            {
                HasValue = reply.Value is not null,
                Value = reply.Value,
            }.Write(frame);
            if (reply.Point is { } point)
            {
                Outcome.AppendPoint(frame, at + Frame.ReplyHeaderBytes, point);
            }

            Frame.EndReply(frame, at);
        }

        Send(frame, replies.Count);
    }

    public void SendMap()
    {
        ByteBuffer frame = ByteBuffer.Rent();
        Frame.Begin(frame, FrameKind.Map);
        frame.Append(_node.Describe().ToByteArray());
        Send(frame, 1);
    }

    public void SendEmpty(FrameKind kind, ushort version = 0)
    {
        ByteBuffer frame = ByteBuffer.Rent();
        Frame.Begin(frame, kind, version);
        Send(frame, 0);
    }

    /// <summary>Sends bytes that need not be a frame.</summary>
    public void SendRaw(byte[] bytes)
    {
        lock (_sending)
        {
            _toClient.Writer.WriteAsync(bytes).AsTask().Wait();
        }
    }

    /// <inheritdoc/>
    public async ValueTask WriteAsync(ReadOnlyMemory<byte> messages)
    {
        Interlocked.Increment(ref WritesBegun);
        if (_node.TakesLate)
        {
            await Task.CompletedTask.ConfigureAwait(ConfigureAwaitOptions.ForceYielding);
        }

        await _writable.Task.WaitAsync(_end.Token).ConfigureAwait(false);
        await _toNode.Writer.WriteAsync(messages, _end.Token).ConfigureAwait(false);
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

    private static TaskCompletionSource Completed()
    {
        TaskCompletionSource source = new();
        source.SetResult();
        return source;
    }

    private void Send(ByteBuffer frame, int count)
    {
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

    private async Task ServeAsync()
    {
        try
        {
            while (true)
            {
                ReadResult result = await _toNode.Reader.ReadAtLeastAsync(Frame.GrpcPrefixBytes, _end.Token);
                byte[] prefix = System.Buffers.BuffersExtensions.ToArray(result.Buffer.Slice(0, Frame.GrpcPrefixBytes));
                int length = Frame.GrpcPrefixBytes + BinaryPrimitives.ReadInt32BigEndian(prefix.AsSpan(1));
                _toNode.Reader.AdvanceTo(result.Buffer.Start);
                result = await _toNode.Reader.ReadAtLeastAsync(length, _end.Token);
                byte[] message = System.Buffers.BuffersExtensions.ToArray(
                    result.Buffer.Slice(Frame.GrpcPrefixBytes, length - Frame.GrpcPrefixBytes));
                _toNode.Reader.AdvanceTo(result.Buffer.GetPosition(length));
                OnFrame(message);
            }
        }
        catch (OperationCanceledException)
        {
            // The stream is over.
        }
    }

    private void OnFrame(byte[] message)
    {
        Assert.True(Frame.TryGetPayload(message, out ReadOnlySpan<byte> payload));
        Assert.True(Frame.TryReadHeader(payload, out FrameKind kind, out ushort version, out int count));
        if (kind == FrameKind.Hello)
        {
            Assert.Equal(Kahuna.Wire.Limits.WireVersion, version);
            _node.OnHello(this);
            return;
        }

        Assert.Equal(FrameKind.Requests, kind);
        List<FakeRequest> requests = [];
        int at = Frame.HeaderBytes;
        for (int i = 0; i < count; i++)
        {
            uint number = BinaryPrimitives.ReadUInt32LittleEndian(payload[at..]);
            uint waitMs = BinaryPrimitives.ReadUInt32LittleEndian(payload[(at + 4)..]);
            int length = BinaryPrimitives.ReadInt32LittleEndian(payload[(at + 8)..]);
            ReadOnlySpan<byte> bytes = payload.Slice(at + Frame.RequestHeaderBytes, length);
            Assert.True(Command.TryRead(bytes, out Command command));
            requests.Add(
                new FakeRequest(
                    this,
                    number,
                    waitMs,
                    command.Kind,
                    command.Flags,
                    System.Text.Encoding.UTF8.GetString(command.Key),
                    command.Value.ToArray(),
                    count)
                { Bytes = bytes.ToArray() });
            at += Frame.RequestHeaderBytes + length;
        }

        Assert.Equal(payload.Length, at);
        _node.OnRequests(this, requests);
    }
}
