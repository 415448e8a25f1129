using Grpc.Core;
using Kahuna.Client.Connection;
using Kahuna.Server.Api;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Protos;
using Kahuna.Server.Cluster;
using Kahuna.Server.Primitives;
using Kahuna.Tests.Api.Grpc.Protos;
using Kahuna.Tests.Partitions;
using Kahuna.Tests.Transport;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Protos;
using Frame = Kahuna.Wire.Frames.Frame;
using WireFrame = Kahuna.Wire.Protos.Frame;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>
/// Streams whose caller neither sends nor reads are cut; streams that only have nothing to say are not.
/// </summary>
public sealed class StalledStreamTests
{
    private const string Exchange = "/kahuna.v1.Cluster/Exchange";
    private const string Watch = "/kahuna.v1.Cluster/WatchCluster";
    private const string Echo = "/kahuna.test.Streams/Echo";

    private static readonly TimeSpan s_short = TimeSpan.FromMilliseconds(200);
    private static readonly TimeSpan s_long = TimeSpan.FromMinutes(10);

    [Fact]
    public async Task An_exchange_without_a_first_frame_is_ended()
    {
        await using GrpcTestHost host = await ExchangeAsync(request: s_short, reply: s_long);
        using RawCall silent = await RawCall.OpenAsync(host.Address, Exchange);
        await EndsAsync(silent, s_short);
    }

    [Fact]
    public async Task An_exchange_that_stops_inside_a_frame_is_ended_and_one_that_is_idle_is_not()
    {
        // A busy machine may need longer than a short patience for its greeting; one that ends idle streams ends them
        // after any.
        Assert.True(
            await OnlyTheIdleLivesAsync(s_short)
                || await OnlyTheIdleLivesAsync(25 * s_short)
                || await OnlyTheIdleLivesAsync(300 * s_short));
    }

    private static async Task<bool> OnlyTheIdleLivesAsync(TimeSpan patience)
    {
        await using GrpcTestHost host = await ExchangeAsync(request: patience, reply: s_long);
        using RawCall idle = await GreetAsync(host);
        using RawCall half = await GreetAsync(host);
        await half.WriteAsync(new byte[] { 0, 0, 0, 1, 0, 7, 7 });
        await EndsAsync(half, patience);

        // As old as the other, and it still answers.
        try
        {
            await idle.WriteAsync(BadRequests(1));
            idle.CompleteRequests();
            return (await idle.StatusAsync().WaitAsync(LastNet.Span)).Code == RawCall.OK;
        }
        catch (Exception cut) when (
            cut is IOException or OperationCanceledException or HttpRequestException or ObjectDisposedException)
        {
            return false;
        }
    }

    [Fact]
    public async Task An_exchange_whose_answers_nobody_takes_is_reset()
    {
        LogRecorder log = new();
        await using GrpcTestHost host = await ExchangeAsync(request: s_long, reply: s_short, log);
        using RawCall rude = await GreetAsync(host);
        try
        {
            for (int i = 0; i < 100; i++)
            {
                await rude.WriteAsync(BadRequests(1_000)).WaitAsync(LastNet.Span);
            }
        }
        catch (Exception cut) when (
            cut is IOException or OperationCanceledException or HttpRequestException or ObjectDisposedException)
        {
            // Reset while it was still sending.
        }

        await log.WaitFor("was lost");
    }

    [Fact]
    public async Task A_watch_that_nobody_reads_is_reset()
    {
        LogRecorder log = new();
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(
            static server => server.AddService(ClusterReflection.Descriptor.Services[0], static service => service
                .ServerStreaming<DescribeClusterRequest, DescribeClusterResponse>(
                    "WatchCluster", static async (_, replies, _) =>
                {
                    while (true)
                    {
                        await replies.WriteAsync(new DescribeClusterResponse { ClusterId = new string('x', 100_000) });
                    }
                })),
            new CallLimits { ReplyTimeout = s_short },
            log: log);
        using HttpMessageInvoker http = RawHttp.Invoker();
        using HttpRequestMessage request = RawHttp.Request(host.Address, Watch, [0, 0, 0, 0, 0]);
        using HttpResponseMessage response = await http.SendAsync(request, CancellationToken.None);
        await log.WaitFor("was lost");
    }

    [Fact]
    public async Task A_stream_of_messages_without_a_first_one_is_ended()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(
            options: new CallLimits { RequestTimeout = s_short });
        using AsyncDuplexStreamingCall<EchoMessage, EchoMessage> silent =
            host.Channel.DuplexStreaming<EchoMessage, EchoMessage>(Echo, EchoMessage.Parser);
        RpcException end = await Assert.ThrowsAsync<RpcException>(() => silent.ReadAsync()).WaitAsync(LastNet.Span);
        Assert.Equal(StatusCode.DeadlineExceeded, end.StatusCode);
    }

    [Fact]
    public async Task A_connection_has_room_for_a_number_of_streams()
    {
        CallLimits options = new() { StreamsPerConnectionMax = 3 };
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(options: options);
        using HttpMessageInvoker connection = RawCall.Connection();
        List<RawCall> open = [];
        for (int i = 0; i < options.StreamsPerConnectionMax; i++)
        {
            open.Add(await RawCall.OpenAsync(connection, host.Address, Exchange));
        }

        StreamStatus refused = await RawCall.RefusalAsync(RawCall.OpenAsync(connection, host.Address, Exchange));
        Assert.Equal(RawCall.ResourceExhausted, refused.Code);
        Assert.Equal(
            "The connection has 3 open streams, its limit; this one was not opened. End others "
                + "first, or use another connection.",
            refused.Message);

        // Calls with an end are not counted, another connection has room of its own, and an ended stream makes room.
        using HttpRequestMessage describe = RawHttp.Request(
            host.Address, "/kahuna.v1.Cluster/DescribeCluster", [0, 0, 0, 0, 0]);
        using HttpResponseMessage description = await connection.SendAsync(describe, CancellationToken.None);
        Assert.Equal("0", await RawHttp.StatusAsync(description));
        (await RawCall.OpenAsync(host.Address, Exchange)).Dispose();
        open[0].CompleteRequests();
        Assert.Equal(RawCall.OK, (await open[0].StatusAsync()).Code);
        (await OpenSoonAsync(connection, host.Address)).Dispose();
        open.ForEach(static call => call.Dispose());
    }

    /// <summary>The caller hears of a stream's end a moment before the server has counted it.</summary>
    private static async Task<RawCall> OpenSoonAsync(HttpMessageInvoker connection, Uri address)
    {
        using CancellationTokenSource limit = new(LastNet.Span);
        while (true)
        {
            try
            {
                return await RawCall.OpenAsync(connection, address, Exchange, limit.Token);
            }
            catch (StreamRefusedException full) when (full.Status.Code == RawCall.ResourceExhausted)
            {
                await Task.Yield();
            }
        }
    }

    private static async Task EndsAsync(RawCall call, TimeSpan patience)
    {
        StreamStatus end = await call.StatusAsync().WaitAsync(LastNet.Span);
        string seconds = patience.TotalSeconds.ToString("0.#", System.Globalization.CultureInfo.InvariantCulture);
        Assert.Equal(
            new StreamStatus(RawCall.DeadlineExceeded, $"The request was not complete after {seconds} s."), end);
    }

    /// <summary>The shipped exchange; no partition is needed for requests that the admission refuses.</summary>
    private static Task<GrpcTestHost> ExchangeAsync(TimeSpan request, TimeSpan reply, LogRecorder? log = null)
    {
        ClusterView view = new(new ClusterIdentity("test", new NodeId(1), "1", 1, [(new NodeId(1), new Uri("https://127.0.0.1:1"))]), hasEphemeral: false);
        view.ReadCommitIndexFrom(static _ => 0);
        ClusterService service = new(
            view,
            new RequestAdmission(new Router(new ModelCluster(1)[1].Loops!, view), 1 << 20),
            new NodeCredential(new ClusterSecrets()),
            default);
        return GrpcTestHost.StartAsync(
            server =>
                server.AddService(ClusterReflection.Descriptor.Services[0], methods =>
                    methods.Duplex<WireFrame, WireFrame>("Exchange", service.Exchange)),
            new CallLimits { RequestTimeout = request, ReplyTimeout = reply },
            log: log);
    }

    private static async Task<RawCall> GreetAsync(GrpcTestHost host)
    {
        RawCall call = await RawCall.OpenAsync(host.Address, Exchange);
        ByteBuffer hello = ByteBuffer.Rent();
        Frame.Begin(hello, FrameKind.Hello, Limits.WireVersion);
        Frame.End(hello, 0);
        await call.WriteAsync(hello.WrittenMemory);
        hello.Return();
        return call;
    }

    /// <summary>A frame of requests that the admission refuses: their key is empty.</summary>
    private static byte[] BadRequests(int count)
    {
        ByteBuffer frame = ByteBuffer.Rent();
        Frame.Begin(frame, FrameKind.Requests);
        for (uint i = 1; i <= count; i++)
        {
            Frame.AppendRequest(
                frame, i, 0, new Command { Kind = CommandKind.Get, Durability = Durability.Persistent });
        }

        Frame.End(frame, count);
        byte[] bytes = frame.Written.ToArray();
        frame.Return();
        return bytes;
    }
}
