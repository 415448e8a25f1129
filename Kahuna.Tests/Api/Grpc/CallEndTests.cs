using Google.Protobuf;
using Kahuna.Client.Wire.Grpc;
using Kahuna.Client.Wire.Protos;
using Kahuna.Server.Api.Grpc;
using Kahuna.Tests.Api.Grpc.Protos;
using Kahuna.Tests.Transport;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>How calls end: deadlines, cancellation, failures, limits, the server's stop; and what travels beside the messages.</summary>
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
        GrpcException failure = await FailureOf(Call(host, new CallOptions { Deadline = TimeSpan.FromMilliseconds(100) }));
        Assert.Equal(GrpcStatusCode.DeadlineExceeded, failure.Code);
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
        using HttpResponseMessage response = await http.SendAsync(request, CancellationToken.None).WaitAsync(s_patience);
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
            Assert.NotNull(call.TimeLeft);
            Interlocked.Increment(ref begun);
            using CancellationTokenRegistration registration = call.CancellationToken.Register(() => cancelled.TrySetResult());
            await Task.Delay(Timeout.Infinite, call.CancellationToken);
            return new GetKeyValueResponse();
        });

        // A deadline that passes before the call has reached the handler shows nothing, so each is longer than the one before.
        for (TimeSpan deadline = TimeSpan.FromMilliseconds(100); Volatile.Read(ref begun) == 0 && deadline < s_patience; deadline *= 3)
        {
            GrpcException failure = await FailureOf(Call(host, new CallOptions { Deadline = deadline }));
            Assert.Equal(GrpcStatusCode.DeadlineExceeded, failure.Code);
        }

        await cancelled.Task.WaitAsync(s_patience);
    }

    [Fact]
    public async Task A_deadline_ends_streams_of_both_kinds()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        GrpcException failure = await Assert.ThrowsAsync<GrpcException>(async () =>
        {
            await foreach (DescribeClusterResponse _ in host.Channel.ServerStreamingAsync(Watch, new DescribeClusterRequest(), DescribeClusterResponse.Parser, new CallOptions { Deadline = TimeSpan.FromMilliseconds(200) }))
            {
            }
        });
        Assert.Equal(GrpcStatusCode.DeadlineExceeded, failure.Code);

        using DuplexStreamingCall<EchoMessage, EchoMessage> echo = host.Channel.DuplexStreaming<EchoMessage, EchoMessage>(Echo, EchoMessage.Parser, new CallOptions { Deadline = TimeSpan.FromMilliseconds(200) });
        await echo.WriteAsync(new EchoMessage { DelayMs = 50_000 });
        Assert.Equal(GrpcStatusCode.DeadlineExceeded, (await Assert.ThrowsAsync<GrpcException>(() => echo.ReadAsync())).Code);
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
        Task<GetKeyValueResponse> call = Call(host, new CallOptions { CancellationToken = cancel.Token });
        await entered.Task.WaitAsync(s_patience);
        cancel.Cancel();
        OperationCanceledException failure = await Assert.ThrowsAsync<OperationCanceledException>(() => call);
        Assert.Equal(cancel.Token, failure.CancellationToken);
        await cancelled.Task.WaitAsync(s_patience);
    }

    [Fact]
    public async Task An_exception_of_the_handler_is_unknown_and_tells_nothing()
    {
        await using GrpcTestHost host = await HostOf((_, _) => throw new InvalidOperationException("secret"));
        GrpcException failure = await FailureOf(Call(host));
        Assert.Equal(GrpcStatusCode.Unknown, failure.Code);
        Assert.DoesNotContain("secret", failure.ToString(), StringComparison.Ordinal);
    }

    [Fact]
    public async Task Metadata_goes_both_ways()
    {
        await using GrpcTestHost host = await HostOf((_, call) =>
        {
            call.ResponseHeaders.Add("x-head", call.RequestHeaders.GetText("x-text")!);
            foreach (GrpcMetadataEntry entry in call.RequestHeaders.GetAll("x-blob-bin"))
            {
                call.ResponseTrailers.Add("x-tail-bin", entry.Bytes!);
            }

            return Task.FromResult(new GetKeyValueResponse { Revision = call.Peer.Length });
        });
        GrpcResponseMetadata received = new();
        byte[] blob = [0, 1, 254, 255];
        await Call(host, new CallOptions { Headers = new GrpcMetadata { { "X-Text", "one" }, { "x-blob-bin", blob }, { "x-blob-bin", [7] } }, Response = received });
        Assert.Equal("one", received.Headers.GetText("x-head"));
        Assert.Equal([blob, [7]], received.Trailers.GetAll("x-tail-bin").Select(entry => entry.Bytes!));
    }

    [Fact]
    public async Task A_status_carries_text_of_any_language_and_trailers()
    {
        await using GrpcTestHost host = await HostOf((_, call) =>
        {
            call.ResponseTrailers.Add("a", "1");
            throw new GrpcException(new GrpcStatus(GrpcStatusCode.FailedPrecondition, "Schlüssel «κ» 100 %"), new GrpcMetadata { { "b", "2" } });
        });
        GrpcException failure = await FailureOf(Call(host));
        Assert.Equal(new GrpcStatus(GrpcStatusCode.FailedPrecondition, "Schlüssel «κ» 100 %"), failure.Status);
        Assert.Equal("1", failure.Trailers.GetText("a"));
        Assert.Equal("2", failure.Trailers.GetText("b"));
    }

    [Fact]
    public async Task A_status_after_messages_ends_the_stream()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(server => server.AddService(ClusterReflection.Descriptor.Services[0], service => service
            .ServerStreaming<DescribeClusterRequest, DescribeClusterResponse>("WatchCluster", async (_, replies, call) =>
            {
                call.CompressReplies();
                for (uint i = 0; i < 3; i++)
                {
                    await replies.WriteAsync(new DescribeClusterResponse { NodeId = i });
                }

                throw new GrpcException(GrpcStatusCode.DataLoss, "gone");
            })));
        List<uint> seen = [];
        GrpcException failure = await Assert.ThrowsAsync<GrpcException>(async () =>
        {
            await foreach (DescribeClusterResponse reply in host.Channel.ServerStreamingAsync(Watch, new DescribeClusterRequest(), DescribeClusterResponse.Parser))
            {
                seen.Add(reply.NodeId);
            }
        });
        Assert.Equal(GrpcStatusCode.DataLoss, failure.Code);
        Assert.Equal([0u, 1u, 2u], seen);
    }

    [Fact]
    public async Task Messages_over_a_limit_are_refused_on_either_side()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(options: new GrpcServerOptions { MaxReceiveMessageBytes = 1000 });
        SetKeyValueRequest large = new() { Key = "a", Value = new Value { Data = ByteString.CopyFrom(new byte[2000]) }, Durability = Durability.Persistent };
        GrpcException refused = await FailureOf(host.Channel.UnaryAsync("/kahuna.v1.KeyValues/SetKeyValue", large, SetKeyValueResponse.Parser));
        Assert.Equal(GrpcStatusCode.ResourceExhausted, refused.Code);
        Assert.Contains("1000", refused.Status.Message, StringComparison.Ordinal);

        // Compressed, the same message is small on the wire and still too large.
        refused = await FailureOf(host.Channel.UnaryAsync("/kahuna.v1.KeyValues/SetKeyValue", large, SetKeyValueResponse.Parser, new CallOptions { Gzip = true }));
        Assert.Equal(GrpcStatusCode.ResourceExhausted, refused.Code);

        await using GrpcTestHost other = await HostOf((_, _) => Task.FromResult(new GetKeyValueResponse { Value = new Value { Data = ByteString.CopyFrom(new byte[2000]) } }));
        await using GrpcChannel small = new(other.Address, new GrpcChannelOptions { Tls = TestCertificate.Trust, MaxReceiveMessageBytes = 1000, MaxSendMessageBytes = 10 });
        Assert.Equal(GrpcStatusCode.ResourceExhausted, (await FailureOf(small.UnaryAsync(Get, new GetKeyValueRequest(), GetKeyValueResponse.Parser))).Code);
        Assert.Equal(GrpcStatusCode.ResourceExhausted, (await FailureOf(small.UnaryAsync(Get, new GetKeyValueRequest { Key = "longer than ten bytes" }, GetKeyValueResponse.Parser))).Code);
    }

    [Fact]
    public async Task Unbound_methods_and_unknown_services_are_unimplemented()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        foreach (string path in (string[])["/kahuna.v1.KeyValues/DeleteKeyValue", "/kahuna.v1.KeyValues/Nothing", "/no.such.Service/Method"])
        {
            GrpcException failure = await FailureOf(host.Channel.UnaryAsync(path, new GetKeyValueRequest(), GetKeyValueResponse.Parser));
            Assert.Equal(GrpcStatusCode.Unimplemented, failure.Code);
        }

        GrpcException open = await FailureOf(host.Channel.OpenRawDuplexAsync("/no.such.Service/Method", null, CancellationToken.None));
        Assert.Equal(GrpcStatusCode.Unimplemented, open.Code);
    }

    [Fact]
    public async Task An_address_where_nobody_listens_is_unavailable_and_surely_not_reached()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        await host.StopAsync();
        GrpcException failure = await FailureOf(Call(host));
        Assert.Equal(GrpcStatusCode.Unavailable, failure.Code);
        Assert.True(failure.NeverProcessed);
    }

    [Fact]
    public async Task A_server_whose_certificate_is_not_trusted_is_unavailable()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        await using GrpcChannel channel = new(host.Address);
        GrpcException failure = await FailureOf(channel.UnaryAsync(Get, new GetKeyValueRequest(), GetKeyValueResponse.Parser));
        Assert.Equal(GrpcStatusCode.Unavailable, failure.Code);
        Assert.True(failure.NeverProcessed);
    }

    [Fact]
    public async Task Streams_end_when_the_server_stops()
    {
        using CancellationTokenSource stop = new();
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(options: new GrpcServerOptions { StopToken = stop.Token });
        GrpcException failure = await Assert.ThrowsAsync<GrpcException>(async () =>
        {
            await foreach (DescribeClusterResponse _ in host.Channel.ServerStreamingAsync(Watch, new DescribeClusterRequest(), DescribeClusterResponse.Parser))
            {
                stop.Cancel();
            }
        });
        Assert.Equal(GrpcStatusCode.Unavailable, failure.Code);
    }

    [Fact]
    public async Task A_writer_learns_the_servers_reason()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        using DuplexStreamingCall<EchoMessage, EchoMessage> echo = host.Channel.DuplexStreaming<EchoMessage, EchoMessage>(Echo, EchoMessage.Parser);
        GrpcException failure = await Assert.ThrowsAsync<GrpcException>(async () =>
        {
            for (int i = 0; i < 1_000_000; i++)
            {
                await echo.WriteAsync(new EchoMessage { DelayMs = 100_000 });
            }
        });
        Assert.Equal(GrpcStatusCode.InvalidArgument, failure.Code);
    }

    [Fact]
    public async Task Disposing_a_raw_stream_cancels_the_handler()
    {
        TaskCompletionSource<Exception?> ended = new();
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(server => server.AddService(ClusterReflection.Descriptor.Services[0], service => service
            .RawDuplex("Exchange", async (stream, call) =>
            {
                try
                {
                    // A reader may see the reset as the end of its input, so the handler waits for nothing but its token.
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
        RawDuplexCall raw = await host.Channel.OpenRawDuplexAsync("/kahuna.v1.Cluster/Exchange", null, CancellationToken.None);
        raw.Dispose();
        Assert.IsAssignableFrom<OperationCanceledException>(await ended.Task.WaitAsync(s_patience));
    }

    /// <summary>The web server tells the handler of a stream that its client has reset, now and then before it cancels the call's token.</summary>
    [Fact]
    public async Task A_stream_that_was_reset_is_no_failure_of_the_server()
    {
        LogRecorder log = new();
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(
            server => server.AddService(ClusterReflection.Descriptor.Services[0], service => service
                .RawDuplex("Exchange", static (_, _) => Task.FromException(new IOException("The client reset the request stream.")))),
            log: log);
        GrpcException failure = await FailureOf(host.Channel.OpenRawDuplexAsync("/kahuna.v1.Cluster/Exchange", null, CancellationToken.None));
        Assert.Equal(GrpcStatusCode.Cancelled, failure.Code);
        Assert.Equal(1, log.Count("was lost"));
        Assert.Single(log.Lines);
    }

    [Fact]
    public async Task Opening_a_raw_stream_can_be_cancelled()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(server => server.AddService(ClusterReflection.Descriptor.Services[0], service => service
            .RawDuplex("Exchange", static (_, call) => Task.Delay(Timeout.Infinite, call.CancellationToken))));
        using CancellationTokenSource cancel = new(TimeSpan.FromMilliseconds(100));
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => host.Channel.OpenRawDuplexAsync("/kahuna.v1.Cluster/Exchange", null, cancel.Token));
    }

    [Fact]
    public async Task A_stream_whose_reader_stopped_is_reset_after_its_deadline()
    {
        TaskCompletionSource<Exception> ended = new();
        GrpcServerOptions options = new() { StreamEndGrace = TimeSpan.FromMilliseconds(100) };
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(
            server => server.AddService(ClusterReflection.Descriptor.Services[0], service => service
                .ServerStreaming<DescribeClusterRequest, DescribeClusterResponse>("WatchCluster", async (_, replies, _) =>
                {
                    try
                    {
                        while (true)
                        {
                            await replies.WriteAsync(new DescribeClusterResponse { ClusterId = new string('x', 100_000) });
                        }
                    }
                    catch (Exception e)
                    {
                        ended.SetResult(e);
                        throw;
                    }
                })),
            options);
        using HttpMessageInvoker http = RawHttp.Invoker();
        using HttpRequestMessage request = RawHttp.Request(host.Address, Watch, [0, 0, 0, 0, 0]);
        request.Headers.Add("grpc-timeout", "300m");
        using HttpResponseMessage response = await http.SendAsync(request, CancellationToken.None);
        await ended.Task.WaitAsync(s_patience);
    }

    private static Task<GrpcTestHost> HostOf(Func<GetKeyValueRequest, CallContext, Task<GetKeyValueResponse>> handler) =>
        GrpcTestHost.StartAsync(server => server.AddService(KeyValuesReflection.Descriptor.Services[0], service => service.Unary("GetKeyValue", handler)));

    private static Task<GetKeyValueResponse> Call(GrpcTestHost host, CallOptions options = default) =>
        host.Channel.UnaryAsync(Get, new GetKeyValueRequest(), GetKeyValueResponse.Parser, options);

    private static Task<GrpcException> FailureOf(Task call) => Assert.ThrowsAsync<GrpcException>(() => call).WaitAsync(s_patience);
}
