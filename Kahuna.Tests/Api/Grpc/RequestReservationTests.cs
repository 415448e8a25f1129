using Grpc.Core;
using Kahuna.Client.Connection;
using Kahuna.Server.Api;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Protos;
using Kahuna.Server.Cluster;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Tests.Partitions;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Frames;
using Frame = Kahuna.Wire.Frames.Frame;
using WireFrame = Kahuna.Wire.Protos.Frame;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>
/// Complete requests that wait are counted, per connection and per node: past a limit streams are not read, and large
/// calls refused.
/// </summary>
public sealed class RequestReservationTests
{
    private const string Exchange = "/kahuna.v1.Cluster/Exchange";
    private const string Set = "/kahuna.v1.KeyValues/SetKeyValue";
    private const int Mega = 1 << 20;

    [Fact]
    public void All_streams_of_a_connection_share_its_room()
    {
        RequestBudget node = new(RequestBudget.NodeBytesMax);
        RequestBudget connection = new(RequestBudget.ConnectionBytesMax);
        int taken = 0;
        for (int i = 0; i < 100; i++)
        {
            taken += Take(new RequestReservation(connection, node), 33 * Mega);
        }

        Assert.Equal(1, taken);
        Assert.True(new RequestReservation(connection, node).Fits(RequestBudget.SmallBytes));
        Assert.True(new RequestReservation(new RequestBudget(RequestBudget.ConnectionBytesMax), node).Fits(33 * Mega));
    }

    [Fact]
    public void Connections_that_take_all_they_may_leave_room_for_others()
    {
        RequestBudget node = new(RequestBudget.NodeBytesMax);
        for (int i = 0; i < 11; i++)
        {
            RequestReservation greedy = new(new RequestBudget(RequestBudget.ConnectionBytesMax), node);
            while (Take(greedy, Mega) > 0)
            {
            }
        }

        Assert.InRange(node.Free, RequestBudget.NodeBytesMax / 2, RequestBudget.NodeBytesMax * 2 / 3);
        Assert.True(new RequestReservation(new RequestBudget(RequestBudget.ConnectionBytesMax), node).Fits(8 * Mega));
    }

    [Fact]
    public void A_connection_that_holds_nothing_sends_ordinary_frames_to_a_full_node()
    {
        RequestBudget node = new(RequestBudget.NodeBytesMax);
        node.Add(node.BytesMax);
        RequestReservation hold = new(new RequestBudget(RequestBudget.ConnectionBytesMax), node);
        Assert.False(hold.Fits(Mega));
        Assert.Equal(1, Take(hold, Limits.FrameBytesTarget + 1_000));
        Assert.Equal(0, Take(hold, Limits.FrameBytesTarget + 1_000));
        hold.Add(-hold.Bytes);
        Assert.Equal(1, Take(hold, Limits.FrameBytesTarget + 1_000));
    }

    [Fact]
    public async Task A_frame_has_a_bound_of_requests()
    {
        RequestBudget node = new(RequestBudget.NodeBytesMax);
        await using GrpcTestHost host = await ExchangeAsync(node, new RequestBudget(RequestBudget.NodeBytesMax));
        using (RawCall most = await GreetAsync(host))
        {
            await most.WriteAsync(Requests(Limits.InFlightPerStreamMax, ""));
            await AnswerAsync(most);
        }

        using RawCall more = await GreetAsync(host);
        await more.WriteAsync(Requests(Limits.InFlightPerStreamMax + 1, ""));
        StreamStatus refused = await more.StatusAsync().WaitAsync(LastNet.Span);
        Assert.Equal(RawCall.InvalidArgument, refused.Code);
        Assert.Contains("A frame is malformed", refused.Message, StringComparison.Ordinal);
    }

    [Fact]
    public void A_batch_counts_until_its_last_holder_releases_it()
    {
        RequestBudget node = new(RequestBudget.NodeBytesMax);
        ByteBuffer buffer = ByteBuffer.Rent();
        buffer.Append(new byte[1000]);
        ClientBatch batch = ClientBatch.Rent(
            buffer, new HoldingSink(new RequestReservation(new RequestBudget(Mega), node)), default);
        batch.Hold();
        batch.Release();
        Assert.Equal(1000, node.Used);
        batch.Release();
        Assert.Equal(0, node.Used);
    }

    [Fact]
    public void A_message_that_waits_is_counted_and_is_not_waited_for()
    {
        RequestBudget node = new(RequestBudget.NodeBytesMax);
        IncompleteMessage wait = new(null, node);
        wait.Begin(Mega);
        wait.StopTimer();
        Assert.Equal((Mega, false), (node.Used, wait.TimeLeft(TimeSpan.Zero) == TimeSpan.Zero));
        wait.End();
        Assert.Equal(0, node.Used);
    }

    [Fact]
    public async Task Streams_are_not_read_while_there_is_no_room_for_their_next_frame()
    {
        const int Streams = 3;
        RequestBudget node = new(1024L * Mega);
        RequestBudget parts = new(RequestBudget.NodeBytesMax);
        await using GrpcTestHost host = await ExchangeAsync(node, parts);
        byte[] large = Requests(4_000, new string('k', 1_000));
        node.Add(node.BytesMax);
        using RawCall first = await GreetAsync(host);
        using RawCall second = await GreetAsync(host);
        using RawCall third = await GreetAsync(host);
        foreach (RawCall call in new[] { first, second, third })
        {
            await call.WriteAsync(large);
        }

        await UntilAsync(() => node.Waiting == Streams);
        Assert.Equal(node.BytesMax, node.Used);

        // What of a frame is more than a stream's window has been counted as it came, and still is.
        Assert.True(parts.Used >= Streams * Mega, $"{parts.Used} bytes are counted");

        // A small one is served meanwhile.
        using (RawCall small = await GreetAsync(host))
        {
            await small.WriteAsync(Requests(1, ""));
            await AnswerAsync(small);
        }

        node.Add(-node.BytesMax);
        await UntilAsync(() =>
            node.Waiting == 0 && node.Used == Streams * (large.Length - Frame.GrpcPrefixBytes) && parts.Used == 0);
    }

    [Fact]
    public async Task A_stream_whose_caller_goes_away_waits_no_more()
    {
        RequestBudget node = new(64 * Mega);
        await using GrpcTestHost host = await ExchangeAsync(node, new RequestBudget(RequestBudget.NodeBytesMax));
        node.Add(node.BytesMax);
        using (RawCall call = await GreetAsync(host))
        {
            await call.WriteAsync(Requests(1_000, new string('k', 1_000)));
            await UntilAsync(() => node.Waiting == 1);
        }

        await UntilAsync(() => node.Waiting == 0);
        Assert.Equal(node.BytesMax, node.Used);
    }

    [Fact]
    public async Task Large_unary_requests_take_up_room_until_their_calls_end()
    {
        RequestBudget node = new(3 * Mega);
        TaskCompletionSource gate = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(
            server => server.AddService(KeyValuesReflection.Descriptor.Services[0], service => service
                .Unary<SetKeyValueRequest, SetKeyValueResponse>("SetKeyValue", async (request, _) =>
                {
                    await (request.Value.Data.Length > RequestBudget.SmallBytes ? gate.Task : Task.CompletedTask);
                    return new SetKeyValueResponse { Set = true };
                })),
            new CallLimits { WaitingRequests = node });
        Task first = SendAsync(host, Mega);
        await UntilAsync(() => node.Used > Mega);
        using CancellationTokenSource limit = new(LastNet.Span);
        limit.Token.UnsafeRegister(static open => ((TaskCompletionSource)open!).TrySetResult(), gate);
        RpcException refused = await Assert.ThrowsAsync<RpcException>(() => SendAsync(host, Mega));
        Assert.Equal(StatusCode.ResourceExhausted, refused.StatusCode);
        Assert.StartsWith(
            "The connection or the node has used up its budget for waiting requests",
            refused.Status.Detail,
            StringComparison.Ordinal);
        await SendAsync(host, 1000);
        gate.TrySetResult();
        await first;
        await UntilAsync(() => node.Used == 0);
        await SendAsync(host, Mega);
    }

    private static int Take(RequestReservation hold, long bytes)
    {
        if (!hold.Fits(bytes))
        {
            return 0;
        }

        hold.Add(bytes);
        return 1;
    }

    private static Task SendAsync(GrpcTestHost host, int bytes) => host.Channel.UnaryAsync(
        Set,
        new SetKeyValueRequest
        {
            Key = "a",
            Durability = Server.Api.Protos.Durability.Persistent,
            Value = new Value { Data = Google.Protobuf.ByteString.CopyFrom(new byte[bytes]) },
        },
        SetKeyValueResponse.Parser);

    /// <summary>The shipped exchange, over a partition that carries nothing out.</summary>
    private static Task<GrpcTestHost> ExchangeAsync(RequestBudget held, RequestBudget parts)
    {
        ClusterView view = new(new ClusterIdentity("test", new NodeId(1), "1", 1, [(new NodeId(1), new Uri("https://127.0.0.1:1"))]), hasEphemeral: false);
        view.ReadCommitIndexFrom(static _ => 0);
        ClusterService service = new(
            view,
            new RequestAdmission(new Router(new ModelCluster(1)[1].Loops!, view), Mega),
            new NodeCredential(new ClusterSecrets()),
            default);
        return GrpcTestHost.StartAsync(
            server =>
                server.AddService(ClusterReflection.Descriptor.Services[0], methods =>
                    methods.Duplex<WireFrame, WireFrame>("Exchange", service.Exchange)),
            new CallLimits { WaitingRequests = held, IncompleteRequests = parts });
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

    /// <summary>A frame of reads of one key; the admission refuses an empty one.</summary>
    private static byte[] Requests(int count, string key)
    {
        ByteBuffer frame = ByteBuffer.Rent();
        Frame.Begin(frame, FrameKind.Requests);
        byte[] name = System.Text.Encoding.UTF8.GetBytes(key);
        for (uint i = 1; i <= count; i++)
        {
            Frame.AppendRequest(
                frame,
                i,
                0,
                new Command { Kind = CommandKind.Get, Durability = Durability.Persistent, Key = name });
        }

        Frame.End(frame, count);
        byte[] bytes = frame.Written.ToArray();
        frame.Return();
        return bytes;
    }

    /// <summary>Reads until a frame of replies comes; the greeting and the map come before.</summary>
    private static async Task AnswerAsync(RawCall call)
    {
        using FrameReader reader = new();
        while (true)
        {
            int read = await call.ReadAsync(reader.Space()).WaitAsync(LastNet.Span);
            Assert.NotEqual(0, read);
            reader.Advance(read);
            while (reader.TryTake(out ReadOnlySpan<byte> payload))
            {
                if (Frame.TryReadHeader(payload, out FrameKind kind, out _, out _) && kind == FrameKind.Replies)
                {
                    return;
                }
            }
        }
    }

    private static async Task UntilAsync(Func<bool> holds)
    {
        long until = Environment.TickCount64 + (long)LastNet.Span.TotalMilliseconds;
        while (!holds())
        {
            Assert.True(Environment.TickCount64 < until, "It does not become true.");
            await Task.Yield();
        }
    }
}
