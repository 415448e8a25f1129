using Google.Protobuf;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Protos;
using Kahuna.Server.Partitions.Ports;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>
/// Replies of up to 64 KiB that callers do not read are counted, bounded per connection and ended after a while, and
/// they delay nobody else.
/// </summary>
public sealed class UnreadReplyTests
{
    private const int Calls = 200;
    private const int ValueBytes = 60_000;
    private const string Get = "/kahuna.v1.KeyValues/GetKeyValue";

    private static readonly TimeSpan s_long = TimeSpan.FromMinutes(10);
    private static readonly GetKeyValueRequest s_request =
        new() { Key = "big", Durability = Server.Api.Protos.Durability.Persistent };

    [Fact]
    public async Task They_are_counted_until_their_connection_ends()
    {
        ReplyRoom room = new();
        await using GrpcTestHost host = await StartAsync(room, s_long);
        await using (StingyClient stingy = await StingyClient.ConnectAsync(host.Address, Get))
        {
            await stingy.CallAsync(Calls, s_request);
            await UntilAsync(() => room.Used >= Calls * ValueBytes);
            Assert.Equal((0, 0, 0), (stingy.Replies, stingy.Refusals, stingy.Resets));
        }

        await UntilAsync(() => room.Used == 0);
    }

    [Fact]
    public async Task Their_calls_are_reset_when_the_patience_is_over_and_the_connection_serves_on()
    {
        ReplyRoom room = new();
        await using GrpcTestHost host = await StartAsync(room, TimeSpan.FromMilliseconds(300));
        await using StingyClient stingy = await StingyClient.ConnectAsync(host.Address, Get);
        await stingy.CallAsync(Calls, s_request);
        await UntilAsync(() => stingy.Resets == Calls && room.Used == 0);

        // Who takes a reply gets it. On a busy machine a reply may wait for the processor longer than this patience.
        await stingy.GrantAsync(2 * ValueBytes);
        while (stingy.Replies == 0)
        {
            int ended = stingy.Resets;
            await stingy.CallAsync(1, s_request);
            await UntilAsync(() => stingy.Replies > 0 || stingy.Resets > ended);
        }

        await UntilAsync(() => room.Used == 0);
    }

    [Fact]
    public async Task A_connection_has_a_part_of_the_room_and_others_are_served()
    {
        ReplyRoom room = new(3 * Calls * ValueBytes / 4);
        await using GrpcTestHost host = await StartAsync(room, s_long);
        await using StingyClient stingy = await StingyClient.ConnectAsync(host.Address, Get);
        await stingy.CallAsync(Calls, s_request);
        await UntilAsync(() => stingy.Refusals + (room.Used / ValueBytes) >= Calls);
        Assert.InRange(room.Used, room.BytesMax / 4, room.BytesMax / 2);
        Assert.Equal((0, 0), (stingy.Replies, stingy.Resets));

        GetKeyValueResponse answer = await host.Channel.UnaryAsync(Get, s_request, GetKeyValueResponse.Parser);
        Assert.Equal(ValueBytes, answer.Value.Data.Length);

        // Also the same connection is served again once it has taken what waits.
        int refused = stingy.Refusals;
        await stingy.GrantAsync(2 * ValueBytes);
        await UntilAsync(() => stingy.Replies > 0);
        Assert.Equal(refused, stingy.Refusals);
    }

    [Fact]
    public async Task A_connection_of_which_nothing_is_read_is_closed()
    {
        ReplyRoom room = new();
        await using GrpcTestHost host = await StartAsync(
            room, TimeSpan.FromMilliseconds(300), TimeSpan.FromMilliseconds(300));
        await using StingyClient deaf = await StingyClient.ConnectAsync(host.Address, Get, reads: false);
        await Assert.ThrowsAnyAsync<IOException>(async () =>
        {
            // More and more, until the buffers of both sockets are full: on a busy machine a reply may wait for the
            // processor longer than this patience, and then it fills nothing.
            using CancellationTokenSource limit = new(LastNet.Span);
            while (!limit.IsCancellationRequested)
            {
                await deaf.CallAsync(50, s_request).WaitAsync(limit.Token);
                await Task.Delay(20);
                await deaf.LiveAsync().WaitAsync(limit.Token);
            }
        });
        await UntilAsync(() => room.Used == 0);
    }

    [Fact]
    public async Task Many_calls_at_once_get_their_replies()
    {
        ReplyRoom room = new();
        await using GrpcTestHost host = await StartAsync(room, s_long);
        GetKeyValueResponse[] answers = await Task.WhenAll(Enumerable.Range(0, 2 * Calls).Select(
            _ => host.Channel.UnaryAsync(Get, s_request, GetKeyValueResponse.Parser)));
        Assert.All(answers, static answer => Assert.Equal(ValueBytes, answer.Value.Data.Length));
        await UntilAsync(() => room.Used == 0);
    }

    private static async Task<GrpcTestHost> StartAsync(ReplyRoom room, TimeSpan patience, TimeSpan? reset = null)
    {
        CallLimits options = new() { Room = room, ReplyTimeout = patience, ResetTimeout = reset ?? s_long };
        GrpcTestHost host = await GrpcTestHost.StartAsync(options: options);
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

    private static async Task UntilAsync(Func<bool> holds)
    {
        long until = Environment.TickCount64 + (long)LastNet.Span.TotalMilliseconds;
        while (!holds())
        {
            Assert.True(Environment.TickCount64 < until, "It does not become true.");
            await Task.Delay(1);
        }
    }
}
