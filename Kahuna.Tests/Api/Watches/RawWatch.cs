using System.Text;
using Google.Protobuf;
using Grpc.Core;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Watches;
using Frame = Kahuna.Wire.Frames.Frame;
using WireFrame = Kahuna.Wire.Protos.Frame;

namespace Kahuna.Tests.Api.Watches;

/// <summary>A watch stream of a real node, frame by frame. Owned by one test.</summary>
internal sealed class RawWatch : IDisposable
{
    private readonly AsyncDuplexStreamingCall<WireFrame, WireFrame> _call;
    private readonly Queue<WatchSaid> _said = new();

    private RawWatch(AsyncDuplexStreamingCall<WireFrame, WireFrame> call) => _call = call;

    /// <summary>Opens a stream and greets the node.</summary>
    public static async Task<RawWatch> OpenAsync(ChannelBase channel, CancellationToken ct = default)
    {
        RawWatch watch = new(channel.DuplexStreaming<WireFrame, WireFrame>(
            "/kahuna.v1.Cluster/Watch", WireFrame.Parser, new CallOptions(cancellationToken: ct)));
        ByteBuffer hello = ByteBuffer.Rent();
        Frame.Begin(hello, FrameKind.Hello, Limits.WireVersion);
        Frame.End(hello, 0);
        await watch.SendAsync(hello);
        Assert.Equal(FrameKind.Hello, (await watch.NextAsync()).Frame);
        return watch;
    }

    /// <summary>Begins a watch.</summary>
    public Task BeginAsync(
        uint id,
        WatchScope scope,
        string name,
        Durability durability = Durability.Persistent,
        bool withValues = true,
        params ChangePoint[] points)
    {
        byte[] encoded = new byte[points.Length * ChangePoint.Bytes];
        for (int i = 0; i < points.Length; i++)
        {
            points[i].Write(encoded.AsSpan(i * ChangePoint.Bytes));
        }

        ByteBuffer frame = ByteBuffer.Rent();
        Frame.Begin(frame, FrameKind.WatchRequests);
        new WatchRequest
        {
            Operation = WatchOperation.Begin,
            Durability = durability,
            Scope = scope,
            Flags = withValues ? WatchFlags.WithValues : 0,
            Id = id,
            Points = encoded,
            Name = Encoding.UTF8.GetBytes(name),
        }.Write(frame);
        Frame.End(frame, 1);
        return SendAsync(frame);
    }

    /// <summary>Ends a watch.</summary>
    public Task EndAsync(uint id)
    {
        ByteBuffer frame = ByteBuffer.Rent();
        Frame.Begin(frame, FrameKind.WatchRequests);
        new WatchRequest { Operation = WatchOperation.End, Id = id }.Write(frame);
        Frame.End(frame, 1);
        return SendAsync(frame);
    }

    /// <summary>Sends a frame and returns its buffer.</summary>
    public Task SendAsync(ByteBuffer frame)
    {
        ReadOnlySpan<byte> message = frame.Written[Frame.GrpcPrefixBytes..];
        Assert.True(Frame.TryGetPayload(message, out ReadOnlySpan<byte> payload));
        WireFrame sent = new() { Payload = ByteString.CopyFrom(payload) };
        frame.Return();
        return _call.RequestStream.WriteAsync(sent);
    }

    /// <summary>The next item.</summary>
    public async Task<WatchSaid> NextAsync()
    {
        while (_said.Count == 0)
        {
            Assert.True(await _call.ResponseStream.MoveNext(default).WaitAsync(TimeSpan.FromSeconds(30)));
            foreach (WatchSaid said in WatchSaid.Read(_call.ResponseStream.Current.Payload.Span))
            {
                _said.Enqueue(said);
            }
        }

        return _said.Dequeue();
    }

    /// <summary>The next item that is no progress.</summary>
    public async Task<WatchSaid> NextEventAsync()
    {
        WatchSaid next;
        do
        {
            next = await NextAsync();
        }
        while (next.Frame == FrameKind.Progress);
        return next;
    }

    public void Dispose() => _call.Dispose();
}
