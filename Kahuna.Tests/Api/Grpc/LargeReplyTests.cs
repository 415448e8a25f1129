using Google.Protobuf;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Protos;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Tests.Transport;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>
/// A large reply of a unary call is counted until its caller has taken it, and not kept for a caller that does not.
/// </summary>
public sealed class LargeReplyTests
{
    private const int ValueBytes = 2 << 20;
    private const string Get = "/kahuna.v1.KeyValues/GetKeyValue";

    [Fact]
    public async Task A_caller_that_does_not_take_it_is_cut_off_and_its_memory_is_given_back()
    {
        ReplyRoom room = new();
        LogRecorder log = new();
        await using GrpcTestHost host = await StartAsync(room, log, TimeSpan.FromMilliseconds(100));
        using HttpMessageInvoker rude = RawHttp.Invoker();
        using HttpResponseMessage response = await rude.SendAsync(
            RawHttp.Request(
                host.Address,
                Get,
                Message(new GetKeyValueRequest { Key = "big", Durability = Server.Api.Protos.Durability.Persistent })),
            CancellationToken.None);
        await log.WaitFor("was lost");
        Assert.Equal(0, room.Used);
        await Assert.ThrowsAnyAsync<Exception>(() => response.Content.ReadAsByteArrayAsync());
    }

    [Fact]
    public async Task A_caller_that_takes_it_gets_it_whole()
    {
        ReplyRoom room = new();
        await using GrpcTestHost host = await StartAsync(room, new LogRecorder(), TimeSpan.FromMinutes(5));
        GetKeyValueResponse answer = await host.Channel.UnaryAsync(
            Get,
            new GetKeyValueRequest { Key = "big", Durability = Server.Api.Protos.Durability.Persistent },
            GetKeyValueResponse.Parser);
        Assert.Equal(ValueBytes, answer.Value.Data.Length);
        Assert.Equal(0, room.Used);
    }

    private static async Task<GrpcTestHost> StartAsync(ReplyRoom room, LogRecorder log, TimeSpan patience)
    {
        GrpcTestHost host = await GrpcTestHost.StartAsync(
            options: new CallLimits { MessageBytesMax = 2 * ValueBytes, Room = room, ReplyTimeout = patience },
            log: log);
        await host.Channel.UnaryAsync(
            "/kahuna.v1.KeyValues/SetKeyValue",
            new SetKeyValueRequest
            {
                Key = "big",
                Durability = Server.Api.Protos.Durability.Persistent,
                Value = new Value { Data = ByteString.CopyFrom(new byte[ValueBytes]) },
            },
            SetKeyValueResponse.Parser);
        return host;
    }

    private static byte[] Message(IMessage message)
    {
        byte[] body = message.ToByteArray();
        return [0, 0, 0, (byte)(body.Length >> 8), (byte)body.Length, .. body];
    }
}
