using System.Buffers.Binary;
using Google.Protobuf;
using Grpc.Core;
using Kahuna.Client.Connection;
using Kahuna.Server.Api.Protos;
using Kahuna.Tests.Api.Grpc.Protos;
using Kahuna.Wire.Protos;
using CallOptions = Grpc.Core.CallOptions;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>The four kinds of calls and the raw stream, from a client to our server.</summary>
public sealed class CallKindTests
{
    private const string Set = "/kahuna.v1.KeyValues/SetKeyValue";
    private const string Get = "/kahuna.v1.KeyValues/GetKeyValue";

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task A_unary_call_carries_its_messages(bool tls)
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(tls: tls);
        SetKeyValueRequest set =
            new()
            {
                Key = "a",
                Value = new Value { Data = ByteString.CopyFromUtf8("x") },
                Durability = Server.Api.Protos.Durability.Persistent,
            };
        SetKeyValueResponse stored = await host.Channel.UnaryAsync(Set, set, SetKeyValueResponse.Parser);
        Assert.True(stored.Set);

        GetKeyValueResponse read = await host.Channel.UnaryAsync(
            Get,
            new GetKeyValueRequest { Key = "a", Durability = Server.Api.Protos.Durability.Persistent },
            GetKeyValueResponse.Parser);
        Assert.Equal("x", read.Value.Data.ToStringUtf8());
        Assert.Equal(stored.Revision, read.Revision);
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task A_large_value_goes_both_ways(bool gzip)
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        byte[] value = new byte[3 << 20];
        new Random(1).NextBytes(value);
        CallOptions options = new(gzip ? TestCalls.Gzip : null);
        await host.Channel.UnaryAsync(
            Set,
            new SetKeyValueRequest
            {
                Key = "a",
                Value = new Value { Data = ByteString.CopyFrom(value) },
                Durability = Server.Api.Protos.Durability.Persistent,
            },
            SetKeyValueResponse.Parser,
            options);
        GetKeyValueResponse read = await host.Channel.UnaryAsync(
            Get,
            new GetKeyValueRequest { Key = "a", Durability = Server.Api.Protos.Durability.Persistent },
            GetKeyValueResponse.Parser,
            options);
        Assert.Equal(value, read.Value.Data.ToByteArray());
    }

    [Fact]
    public async Task A_status_of_the_handler_arrives_with_its_trailers()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        RpcException failure = await Assert.ThrowsAsync<RpcException>(
            () => host.Channel.UnaryAsync(Set, new SetKeyValueRequest { Key = "a" }, SetKeyValueResponse.Parser));
        Assert.Equal(StatusCode.InvalidArgument, failure.StatusCode);
        Assert.Equal("durability is unset; give PERSISTENT or EPHEMERAL.", failure.Status.Detail);
        Assert.Equal("did-not-happen", failure.Trailers.GetValue("kahuna-outcome"));
    }

    [Fact]
    public async Task A_client_stream_is_counted()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        using AsyncClientStreamingCall<EchoMessage, SinkResponse> call =
            host.Channel.ClientStreaming<EchoMessage, SinkResponse>("/kahuna.test.Streams/Sink", SinkResponse.Parser);
        for (int i = 0; i < 100; i++)
        {
            await call.RequestStream.WriteAsync(new EchoMessage { Payload = ByteString.CopyFrom(new byte[i]) });
        }

        await call.RequestStream.CompleteAsync();
        SinkResponse total = await call;
        Assert.Equal(100u, total.Messages);
        Assert.Equal(4950u, total.Bytes);
    }

    [Fact]
    public async Task A_server_stream_is_read_until_its_reader_leaves()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        int seen = 0;
        await foreach (DescribeClusterResponse reply in host.Channel.ServerStreamingAsync(
            "/kahuna.v1.Cluster/WatchCluster", new DescribeClusterRequest(), DescribeClusterResponse.Parser))
        {
            Assert.Equal("test", reply.ClusterId);
            seen++;
            break;
        }

        Assert.Equal(1, seen);
    }

    [Fact]
    public async Task A_duplex_stream_answers_while_it_is_written()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        using AsyncDuplexStreamingCall<EchoMessage, EchoMessage> call =
            host.Channel.DuplexStreaming<EchoMessage, EchoMessage>("/kahuna.test.Streams/Echo", EchoMessage.Parser);
        for (int i = 0; i < 50; i++)
        {
            await call.RequestStream.WriteAsync(new EchoMessage { Payload = ByteString.CopyFromUtf8($"m{i}") });
            EchoMessage? reply = await call.ReadAsync();
            Assert.Equal($"m{i}", reply!.Payload.ToStringUtf8());
        }

        await call.RequestStream.CompleteAsync();
        Assert.Null(await call.ReadAsync());
    }

    [Fact]
    public async Task A_raw_stream_carries_frames_and_ends_with_a_status()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        using RawCall call = await RawCall.OpenAsync(host.Address, "/kahuna.v1.Cluster/Exchange");
        byte[] frame = new byte[5 + 1000];
        frame.AsSpan(5).Fill(7);
        BinaryPrimitives.WriteUInt32BigEndian(frame.AsSpan(1), 1000);
        byte[] answer = new byte[frame.Length];
        for (int i = 0; i < 100; i++)
        {
            await call.WriteAsync(frame);
            await call.ReadExactlyAsync(answer);
            Assert.Equal(frame, answer);
        }

        call.CompleteRequests();
        Assert.Equal(0, await call.ReadAsync(answer));
        Assert.Equal(new StreamStatus(RawCall.OK, ""), await call.StatusAsync());
    }

    [Fact]
    public async Task Many_calls_share_a_channel()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        ParallelOptions parallel = new() { MaxDegreeOfParallelism = 200 };
        await Parallel.ForEachAsync(Enumerable.Range(0, 400), parallel, async (i, _) =>
        {
            string key = $"k{i}";
            await host.Channel.UnaryAsync(
                Set,
                new SetKeyValueRequest
                {
                    Key = key,
                    Value = new Value { Data = ByteString.CopyFromUtf8(key) },
                    Durability = Server.Api.Protos.Durability.Persistent,
                },
                SetKeyValueResponse.Parser);
            GetKeyValueResponse read = await host.Channel.UnaryAsync(
                Get,
                new GetKeyValueRequest { Key = key, Durability = Server.Api.Protos.Durability.Persistent },
                GetKeyValueResponse.Parser);
            Assert.Equal(key, read.Value.Data.ToStringUtf8());
        });
    }
}
