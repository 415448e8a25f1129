using Google.Protobuf;
using Grpc.Core;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Protos;
using Kahuna.Tests.Api.Grpc.Protos;
using Kahuna.Tests.Transport;
using Kahuna.Wire.Protos;
using CallOptions = Grpc.Core.CallOptions;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>
/// How calls end: deadlines, cancellation, failures, limits, the server's stop; and what travels beside the messages.
/// </summary>
public sealed class CallEndTests
{
    private const string Get = "/kahuna.v1.KeyValues/GetKeyValue";
    private const string Watch = "/kahuna.v1.Cluster/WatchCluster";
    private const string Echo = "/kahuna.test.Streams/Echo";

    private static readonly TimeSpan s_patience = LastNet.Span;

    [Fact]
    public async Task A_deadline_ends_a_unary_call_whose_handler_ignores_it()
    {
        TaskCompletionSource release = new();
        await using GrpcTestHost host = await HostOf(async (_, _) =>
        {
            await release.Task;
            return new GetKeyValueResponse();
        });
        RpcException failure = await FailureOf(Call(host, TestCalls.Within(TimeSpan.FromMilliseconds(100))));
        Assert.Equal(StatusCode.DeadlineExceeded, failure.StatusCode);
        release.SetResult();
    }

    [Fact]
    public async Task The_server_answers_at_the_deadline_even_when_the_client_waits_longer()
    {
        TaskCompletionSource release = new();
        await using GrpcTestHost host = await HostOf(async (_, _) =>
        {
            await release.Task;
            return new GetKeyValueResponse();
        });
        using HttpMessageInvoker http = RawHttp.Invoker();
        using HttpRequestMessage request = RawHttp.Request(host.Address, Get, [0, 0, 0, 0, 0]);
        request.Headers.Add("grpc-timeout", "100m");
        using HttpResponseMessage response = await http.SendAsync(request, CancellationToken.None)
            .WaitAsync(s_patience);
        Assert.Equal("4", await RawHttp.StatusAsync(response));
        release.SetResult();
    }

    [Fact]
    public async Task A_deadline_cancels_the_handlers_token()
    {
        int begun = 0;
        TaskCompletionSource cancelled = new();
        await using GrpcTestHost host = await HostOf(async (_, call) =>
        {
            Assert.NotNull(call.TimeLeft());
            Interlocked.Increment(ref begun);
            using CancellationTokenRegistration registration = call.CancellationToken.Register(
                () => cancelled.TrySetResult());
            await Task.Delay(Timeout.Infinite, call.CancellationToken);
            return new GetKeyValueResponse();
        });

        // A deadline that passes before the call has reached the handler shows nothing, so each is longer than the one
        // before.
        for (TimeSpan deadline = TimeSpan.FromMilliseconds(100);
            Volatile.Read(ref begun) == 0 && deadline < s_patience;
            deadline *= 3)
        {
            RpcException failure = await FailureOf(Call(host, TestCalls.Within(deadline)));
            Assert.Equal(StatusCode.DeadlineExceeded, failure.StatusCode);
        }

        await cancelled.Task.WaitAsync(s_patience);
    }

    [Fact]
    public async Task A_deadline_ends_streams_of_both_kinds()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        RpcException failure = await Assert.ThrowsAsync<RpcException>(async () =>
        {
            await foreach (DescribeClusterResponse _ in host.Channel.ServerStreamingAsync(
                Watch,
                new DescribeClusterRequest(),
                DescribeClusterResponse.Parser,
                TestCalls.Within(TimeSpan.FromMilliseconds(200))))
            {
            }
        });
        Assert.Equal(StatusCode.DeadlineExceeded, failure.StatusCode);

        using AsyncDuplexStreamingCall<EchoMessage, EchoMessage> echo =
            host.Channel.DuplexStreaming<EchoMessage, EchoMessage>(
                Echo, EchoMessage.Parser, TestCalls.Within(TimeSpan.FromMilliseconds(200)));
        await echo.RequestStream.WriteAsync(new EchoMessage { DelayMs = 50_000 });
        Assert.Equal(
            StatusCode.DeadlineExceeded, (await Assert.ThrowsAsync<RpcException>(() => echo.ReadAsync())).StatusCode);
    }

    [Fact]
    public async Task The_callers_token_cancels_the_call_and_the_handler()
    {
        TaskCompletionSource entered = new();
        TaskCompletionSource cancelled = new();
        await using GrpcTestHost host = await HostOf(async (_, call) =>
        {
            using CancellationTokenRegistration registration = call.CancellationToken.Register(cancelled.SetResult);
            entered.SetResult();
            await Task.Delay(Timeout.Infinite, call.CancellationToken);
            return new GetKeyValueResponse();
        });
        using CancellationTokenSource cancel = new();
        Task<GetKeyValueResponse> call = Call(host, new CallOptions(cancellationToken: cancel.Token));
        await entered.Task.WaitAsync(s_patience);
        cancel.Cancel();
        Assert.Equal(StatusCode.Cancelled, (await FailureOf(call)).StatusCode);
        await cancelled.Task.WaitAsync(s_patience);
    }

    [Fact]
    public async Task An_exception_of_the_handler_is_unknown_and_tells_nothing()
    {
        await using GrpcTestHost host = await HostOf((_, _) => throw new InvalidOperationException("secret"));
        RpcException failure = await FailureOf(Call(host));
        Assert.Equal(StatusCode.Unknown, failure.StatusCode);
        Assert.DoesNotContain("secret", failure.ToString(), StringComparison.Ordinal);
    }

    [Fact]
    public async Task Metadata_goes_both_ways()
    {
        await using GrpcTestHost host = await HostOf(async (_, call) =>
        {
            await call.WriteResponseHeadersAsync(
                new Metadata { { "x-head", call.RequestHeaders.GetValue("x-text")! } });
            foreach (Metadata.Entry entry in call.RequestHeaders.GetAll("x-blob-bin"))
            {
                call.ResponseTrailers.Add("x-tail-bin", entry.ValueBytes);
            }

            return new GetKeyValueResponse();
        });
        byte[] blob = [0, 1, 254, 255];
        Metadata headers = new() { { "X-Text", "one" }, { "x-blob-bin", blob } };
        using AsyncUnaryCall<GetKeyValueResponse> call = host.Channel.Unary(
            Get, new GetKeyValueRequest(), GetKeyValueResponse.Parser, new CallOptions(headers));
        Assert.Equal("one", (await call.ResponseHeadersAsync).GetValue("x-head"));
        await call;
        Assert.Equal([blob], call.GetTrailers().GetAll("x-tail-bin").Select(entry => entry.ValueBytes));
    }

    [Fact]
    public async Task A_status_carries_text_of_any_language_and_trailers()
    {
        await using GrpcTestHost host = await HostOf((_, call) =>
        {
            call.ResponseTrailers.Add("a", "1");
            throw new RpcException(
                new Status(StatusCode.FailedPrecondition, "Schlüssel «κ» 100 %"), new Metadata { { "b", "2" } });
        });
        RpcException failure = await FailureOf(Call(host));
        Assert.Equal(
            (StatusCode.FailedPrecondition, "Schlüssel «κ» 100 %"), (failure.StatusCode, failure.Status.Detail));
        Assert.Equal("1", failure.Trailers.GetValue("a"));
        Assert.Equal("2", failure.Trailers.GetValue("b"));
    }

    [Fact]
    public async Task A_status_after_messages_ends_the_stream()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(server => server.AddService(
            ClusterReflection.Descriptor.Services[0],
            service => service
            .ServerStreaming<DescribeClusterRequest, DescribeClusterResponse>(
                "WatchCluster", async (_, replies, call) =>
            {
                await call.WriteResponseHeadersAsync(TestCalls.Gzip);
                for (uint i = 0; i < 3; i++)
                {
                    await replies.WriteAsync(new DescribeClusterResponse { NodeId = i });
                }

                throw new RpcException(new Status(StatusCode.DataLoss, "gone"));
            })));
        List<uint> seen = [];
        RpcException failure = await Assert.ThrowsAsync<RpcException>(async () =>
        {
            await foreach (DescribeClusterResponse reply in host.Channel.ServerStreamingAsync(
                Watch, new DescribeClusterRequest(), DescribeClusterResponse.Parser))
            {
                seen.Add(reply.NodeId);
            }
        });
        Assert.Equal(StatusCode.DataLoss, failure.StatusCode);
        Assert.Equal([0u, 1u, 2u], seen);
    }

    [Fact]
    public async Task Messages_over_a_limit_are_refused()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(
            options: new CallLimits { MessageBytesMax = 1000 });
        SetKeyValueRequest large = new()
        {
            Key = "a",
            Value = new Value { Data = ByteString.CopyFrom(new byte[2000]) },
            Durability = Server.Api.Protos.Durability.Persistent,
        };
        RpcException refused = await FailureOf(
            host.Channel.UnaryAsync("/kahuna.v1.KeyValues/SetKeyValue", large, SetKeyValueResponse.Parser));
        Assert.Equal(StatusCode.ResourceExhausted, refused.StatusCode);
        Assert.Contains("1000", refused.Status.Detail, StringComparison.Ordinal);

        // Compressed, the same message is small on the wire and still too large.
        refused = await FailureOf(host.Channel.UnaryAsync(
            "/kahuna.v1.KeyValues/SetKeyValue", large, SetKeyValueResponse.Parser, new CallOptions(TestCalls.Gzip)));
        Assert.Equal(StatusCode.ResourceExhausted, refused.StatusCode);
    }

    [Fact]
    public async Task Unbound_methods_and_unknown_services_are_unimplemented()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        string[] paths =
        [
            "/kahuna.v1.KeyValues/DeleteKeyValue",
            "/kahuna.v1.KeyValues/Nothing",
            "/no.such.Service/Method",
        ];
        foreach (string path in paths)
        {
            RpcException failure = await FailureOf(
                host.Channel.UnaryAsync(path, new GetKeyValueRequest(), GetKeyValueResponse.Parser));
            Assert.Equal(StatusCode.Unimplemented, failure.StatusCode);
        }

        Assert.Equal(
            RawCall.Unimplemented,
            (await RawCall.RefusalAsync(RawCall.OpenAsync(host.Address, "/no.such.Service/Method"))).Code);
    }

    [Fact]
    public async Task Streams_end_when_the_server_stops()
    {
        using CancellationTokenSource stop = new();
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(options: new CallLimits { Stop = stop.Token });
        RpcException failure = await Assert.ThrowsAsync<RpcException>(async () =>
        {
            await foreach (DescribeClusterResponse _ in host.Channel.ServerStreamingAsync(
                Watch, new DescribeClusterRequest(), DescribeClusterResponse.Parser))
            {
                stop.Cancel();
            }
        });
        Assert.Equal(StatusCode.Unavailable, failure.StatusCode);
    }

    [Fact]
    public async Task A_writer_is_stopped_and_the_reader_learns_the_servers_reason()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        using AsyncDuplexStreamingCall<EchoMessage, EchoMessage> echo =
            host.Channel.DuplexStreaming<EchoMessage, EchoMessage>(Echo, EchoMessage.Parser);
        await Assert.ThrowsAsync<RpcException>(async () =>
        {
            for (int i = 0; i < 1_000_000; i++)
            {
                await echo.RequestStream.WriteAsync(new EchoMessage { DelayMs = 100_000 });
            }
        });
        Assert.Equal(StatusCode.InvalidArgument, (await FailureOf(echo.ReadAsync())).StatusCode);
    }

    [Fact]
    public async Task Disposing_a_raw_stream_cancels_the_handler()
    {
        TaskCompletionSource<Exception?> ended = new();
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(server => server.AddService(
            ClusterReflection.Descriptor.Services[0],
            service => service
            .RawDuplex("Exchange", async (stream, call) =>
            {
                try
                {
                    // A reader may see the reset as the end of its input, so the handler waits for nothing but its
                    // token.
                    await stream.FlushHeadersAsync();
                    await Task.Delay(Timeout.Infinite, call.CancellationToken);
                    ended.SetResult(null);
                }
                catch (Exception e)
                {
                    ended.SetResult(e);
                    throw;
                }
            })));
        RawCall raw = await RawCall.OpenAsync(host.Address, "/kahuna.v1.Cluster/Exchange");
        raw.Dispose();
        Assert.IsAssignableFrom<OperationCanceledException>(await ended.Task.WaitAsync(s_patience));
    }

    /// <summary>
    /// The web server tells the handler of a stream that its client has reset, now and then before it cancels the
    /// call's token.
    /// </summary>
    [Fact]
    public async Task A_stream_that_was_reset_is_no_failure_of_the_server()
    {
        LogRecorder log = new();
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(
            server => server.AddService(ClusterReflection.Descriptor.Services[0], service => service
                .RawDuplex("Exchange", static (_, _) =>
                    Task.FromException(new IOException("The client reset the request stream.")))),
            log: log);
        Assert.Equal(
            RawCall.Cancelled,
            (await RawCall.RefusalAsync(RawCall.OpenAsync(host.Address, "/kahuna.v1.Cluster/Exchange"))).Code);
        Assert.Equal(1, log.Count("was lost"));
        Assert.Single(log.Lines);
    }

    [Fact]
    public async Task Opening_a_raw_stream_can_be_cancelled()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(server => server.AddService(
            ClusterReflection.Descriptor.Services[0],
            service => service
            .RawDuplex("Exchange", static (_, call) => Task.Delay(Timeout.Infinite, call.CancellationToken))));
        using CancellationTokenSource cancel = new(TimeSpan.FromMilliseconds(100));
        await Assert.ThrowsAnyAsync<OperationCanceledException>(
            () => RawCall.OpenAsync(host.Address, "/kahuna.v1.Cluster/Exchange", cancel.Token));
    }

    [Fact]
    public async Task A_stream_whose_reader_stopped_is_reset_after_its_deadline()
    {
        TaskCompletionSource<Exception> ended = new();
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(
            server => server.AddService(ClusterReflection.Descriptor.Services[0], service => service
                .ServerStreaming<DescribeClusterRequest, DescribeClusterResponse>(
                    "WatchCluster", async (_, replies, _) =>
                {
                    try
                    {
                        while (true)
                        {
                            await replies.WriteAsync(
                                new DescribeClusterResponse { ClusterId = new string('x', 100_000) });
                        }
                    }
                    catch (Exception e)
                    {
                        ended.SetResult(e);
                        throw;
                    }
                })));
        using HttpMessageInvoker http = RawHttp.Invoker();
        using HttpRequestMessage request = RawHttp.Request(host.Address, Watch, [0, 0, 0, 0, 0]);
        request.Headers.Add("grpc-timeout", "300m");
        using HttpResponseMessage response = await http.SendAsync(request, CancellationToken.None);
        await ended.Task.WaitAsync(s_patience);
    }

    private static Task<GrpcTestHost> HostOf(
        Func<GetKeyValueRequest, ServerCallContext, Task<GetKeyValueResponse>> handler) =>
        GrpcTestHost.StartAsync(server => server.AddService(
            KeyValuesReflection.Descriptor.Services[0], service => service.Unary("GetKeyValue", handler)));

    private static Task<GetKeyValueResponse> Call(GrpcTestHost host, CallOptions options = default) =>
        host.Channel.UnaryAsync(Get, new GetKeyValueRequest(), GetKeyValueResponse.Parser, options);

    private static Task<RpcException> FailureOf(Task call) =>
        Assert.ThrowsAsync<RpcException>(() => call).WaitAsync(s_patience);

}
