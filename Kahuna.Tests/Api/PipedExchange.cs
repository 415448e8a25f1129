using System.Buffers.Binary;
using System.IO.Pipelines;
using Grpc.Core;
using Kahuna.Client.Connection;
using Kahuna.Server.Api;
using Kahuna.Server.Api.Calls;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Sockets;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.Extensions.Logging.Abstractions;
using Frame = Kahuna.Wire.Frames.Frame;
using WireFrame = Kahuna.Wire.Protos.Frame;

namespace Kahuna.Tests.Api;

/// <summary>
/// The shipped exchange between two pipes. The server runs on the thread that sends, so a send returns when the server
/// waits for something. The pipe of answers is full with its first byte: what is written into it has left when the test
/// has read it. Owned by one test.
/// </summary>
internal sealed class PipedExchange : IDisposable
{
    private const string Path = "/kahuna.v1.Cluster/Exchange";

    private readonly Pipe _requests = new(
        new PipeOptions(null, PipeScheduler.Inline, PipeScheduler.Inline, 1, 1, useSynchronizationContext: false));
    private readonly Pipe _answers = new(
        new PipeOptions(null, PipeScheduler.Inline, PipeScheduler.Inline, 1, 1, useSynchronizationContext: false));
    private readonly FrameReader _frames = new();
    private readonly Stream _reader;
    private readonly TestCallContext _context;

    public PipedExchange(ClusterService service, CallLimits options, bool wantsLink = false)
    {
        _reader = _answers.Reader.AsStream();
        DefaultHttpContext http = new();
        http.Features.Set<IRequestBodyPipeFeature>(new RequestPipe(_requests.Reader));
        http.Features.Set<IHttpResponseBodyFeature>(new ResponsePipe(_answers.Writer));
        http.Features.Set<IHttpResetFeature>(new ResetPipe(_requests.Writer));
        http.Request.Protocol = "HTTP/2";
        http.Request.Method = HttpMethods.Post;
        http.Request.Path = Path;
        http.Request.ContentType = "application/grpc";
        if (wantsLink)
        {
            http.Request.Headers[DirectLinkProtocol.Header] = DirectLinkProtocol.Wanted;
        }

        _context = new TestCallContext(http);
        Served = ServeAsync(
            service, new GuardedCall(http, options, MethodType.DuplexStreaming, null, NullLogger.Instance), _context);
    }

    /// <summary>The ticket of a direct link; null: the node has offered none.</summary>
    public string? Ticket => _context.ResponseHeaders?.GetValue(DirectLinkProtocol.Header);

    /// <summary>Ends with the stream.</summary>
    public Task Served { get; }

    /// <summary>The first frame of a client.</summary>
    public static byte[] Hello(ushort version = Limits.WireVersion)
    {
        ByteBuffer hello = ByteBuffer.Rent();
        Frame.Begin(hello, FrameKind.Hello, version);
        Frame.End(hello, 0);
        byte[] bytes = hello.Written.ToArray();
        hello.Return();
        return bytes;
    }

    /// <summary>One frame of the same request again and again.</summary>
    public static byte[] Requests(int count, uint waitMs, in Command command)
    {
        ByteBuffer frame = ByteBuffer.Rent();
        Frame.Begin(frame, FrameKind.Requests);
        for (uint i = 1; i <= count; i++)
        {
            Frame.AppendRequest(frame, i, waitMs, in command);
        }

        Frame.End(frame, count);
        byte[] bytes = frame.Written.ToArray();
        frame.Return();
        return bytes;
    }

    /// <summary>Greets the server and reads its greeting and its map.</summary>
    public async Task GreetAsync()
    {
        ValueTask<FlushResult> sent = _requests.Writer.WriteAsync(Hello());
        await ReadUntilAsync((kind, _) => kind == FrameKind.Map);
        await sent;
    }

    /// <summary>Sends bytes on the call.</summary>
    public Task SendAsync(byte[] bytes) => _requests.Writer.WriteAsync(bytes).AsTask();

    /// <summary>
    /// Sends one frame of the same request again and again; the task completes when the server has taken the frame and
    /// asks for the next.
    /// </summary>
    public Task SendAsync(int count, uint waitMs, in Command command) =>
        SendAsync(Requests(count, waitMs, in command));

    /// <summary>Sends no more.</summary>
    public void Complete() => _requests.Writer.Complete();

    /// <summary>Reads answers until there are as many. Returns how many there are of each status.</summary>
    public async Task<Dictionary<OutcomeStatus, int>> ReadAsync(int count)
    {
        Dictionary<OutcomeStatus, int> read = [];
        int left = count;
        await ReadUntilAsync((kind, payload) =>
        {
            if (kind == FrameKind.Replies)
            {
                left -= Count(payload, read);
            }

            return left <= 0;
        });
        return read;
    }

    public void Dispose()
    {
        _requests.Writer.Complete();
        _answers.Reader.Complete();
        _frames.Dispose();
    }

    private static async Task ServeAsync(ClusterService service, GuardedCall call, TestCallContext context)
    {
        Task served = new CallInterceptor().DuplexStreamingServerHandler<WireFrame, WireFrame>(
            null!, null!, context, service.Exchange);
        call.StartTimer();
        try
        {
            await served;
        }
        finally
        {
            await call.CloseAsync();
        }
    }

    private static int Count(ReadOnlySpan<byte> payload, Dictionary<OutcomeStatus, int> read)
    {
        int count = 0;
        for (int at = Frame.HeaderBytes; at < payload.Length; count++)
        {
            OutcomeStatus status = (OutcomeStatus)payload[at + Frame.ReplyHeaderBytes];
            read[status] = read.GetValueOrDefault(status) + 1;
            at += Frame.ReplyHeaderBytes + BinaryPrimitives.ReadInt32LittleEndian(payload[(at + 4)..]);
        }

        return count;
    }

    private async Task ReadUntilAsync(IsLast isLast)
    {
        while (true)
        {
            while (_frames.TryTake(out ReadOnlySpan<byte> payload))
            {
                if (Frame.TryReadHeader(payload, out FrameKind kind, out _, out _) && isLast(kind, payload))
                {
                    return;
                }
            }

            int bytes = await _reader.ReadAsync(_frames.Space()).AsTask().WaitAsync(LastNet.Span);
            Assert.NotEqual(0, bytes);
            _frames.Advance(bytes);
        }
    }

    private delegate bool IsLast(FrameKind kind, ReadOnlySpan<byte> payload);

    private sealed class RequestPipe(PipeReader reader) : IRequestBodyPipeFeature
    {
        public PipeReader Reader => reader;
    }

    private sealed class ResetPipe(PipeWriter requests) : IHttpResetFeature
    {
        public void Reset(int errorCode) => requests.Complete(new IOException($"reset with {errorCode}"));
    }

    private sealed class ResponsePipe(PipeWriter writer) : IHttpResponseBodyFeature
    {
        public Stream Stream => writer.AsStream();

        public PipeWriter Writer => writer;

        public void DisableBuffering()
        {
        }

        public Task StartAsync(CancellationToken cancellationToken = default) => Task.CompletedTask;

        public Task CompleteAsync() => Task.CompletedTask;

        public Task SendFileAsync(
            string path, long offset, long? count, CancellationToken cancellationToken = default) =>
            throw new NotSupportedException();
    }
}
