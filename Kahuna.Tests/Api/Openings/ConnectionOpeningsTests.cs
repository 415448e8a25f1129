using System.Globalization;
using System.Net;
using Grpc.Core;
using Grpc.Net.Client;
using Kahuna.Client.Wire.Commands;
using Kahuna.Server.Api;
using Kahuna.Server.Api.Openings;
using Kahuna.Server.Api.Protos;
using Kahuna.Server.State;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Tests.Hosting;

namespace Kahuna.Tests.Api.Openings;

/// <summary>How many sessions and idempotency keys a connection, and an address, may begin. The clock is the test's.</summary>
public sealed class ConnectionOpeningsTests
{
    private static readonly IPAddress s_here = IPAddress.Parse("10.0.0.1");
    private static readonly IPAddress s_there = IPAddress.Parse("10.0.0.2");

    private readonly SteppedTime _time = new();
    private readonly NodeOpenings _node;
    private ulong _next = 1;

    public ConnectionOpeningsTests() => _node = new NodeOpenings(_time);

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public void A_connection_begins_so_many_at_once_and_then_so_many_a_second(bool isKey)
    {
        OpeningRate rate = isKey ? OpeningLimits.KeysOfConnection : OpeningLimits.SessionsOfConnection;
        ConnectionOpenings noisy = _node.Of(s_here);
        Assert.Equal(rate.Burst, Begin(noisy, isKey, 3 * rate.Burst));
        _time.Now += TimeSpan.FromSeconds(3);
        Assert.Equal(3 * rate.PerSecond, Begin(noisy, isKey, 3 * rate.Burst));

        // Another connection has its own, and the other kind too.
        Assert.Equal(10, Begin(_node.Of(s_here), isKey, 10));
        Assert.Equal(10, Begin(noisy, !isKey, 10));
        _time.Now += TimeSpan.FromHours(1);
        Assert.Equal(rate.Burst, Begin(noisy, isKey, 3 * rate.Burst));
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public void Connections_of_one_address_share_its_bucket_and_leave_others_alone(bool isKey)
    {
        OpeningRate rate = isKey ? OpeningLimits.KeysOfAddress : OpeningLimits.SessionsOfAddress;
        Assert.Equal(rate.Burst, Enumerable.Range(0, 100).Sum(_ => Begin(_node.Of(s_here), isKey, rate.Burst)));
        ConnectionOpenings late = _node.Of(s_here);
        Assert.Contains("The address has begun more", late.Refusal(Command(isKey, _next++)), StringComparison.Ordinal);
        Assert.Equal(1, Begin(_node.Of(s_there), isKey, 1));

        // What the address refused has cost the connection nothing.
        int most = (isKey ? OpeningLimits.KeysOfConnection : OpeningLimits.SessionsOfConnection).Burst;
        Assert.Equal(0, Begin(late, isKey, 2 * most));
        _time.Now += TimeSpan.FromSeconds(1);
        Assert.Equal(Math.Min(most, rate.PerSecond), Begin(late, isKey, most));
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public void What_one_address_begins_in_a_commands_life_leaves_half_of_a_partitions_room(bool isKey)
    {
        StateLimits limits = new();
        long quota = isKey ? limits.IdempotencyKeysMax : limits.SessionsMax;
        long begun = 0;
        int most = (isKey ? OpeningLimits.KeysOfConnection : OpeningLimits.SessionsOfConnection).Burst;
        for (long ms = 0; ms <= limits.CommandLifeMs; ms += 10_000)
        {
            // As many connections as it takes to use the address up.
            int taken;
            do
            {
                taken = Begin(_node.Of(s_here), isKey, most);
                begun += taken;
            }
            while (taken > 0 && begun <= quota);
            _time.Now += TimeSpan.FromSeconds(10);
        }

        Assert.InRange(begun, 1, quota / 2);
    }

    [Fact]
    public void A_session_that_the_connection_has_begun_costs_nothing()
    {
        ConnectionOpenings connection = _node.Of(s_here);
        for (int i = 0; i < 5_000; i++)
        {
            Assert.Null(connection.Refusal(Command(isKey: false, 1_000_000)));
        }

        Assert.Equal(OpeningLimits.SessionsOfConnection.Burst - 1, Begin(connection, isKey: false, 5_000));
        Assert.Null(connection.Refusal(Command(isKey: false, 1_000_000)));
    }

    [Fact]
    public void Of_the_sessions_that_are_known_the_oldest_goes_first()
    {
        ConnectionOpenings connection = _node.Of(s_here);
        for (ulong i = 1; i <= OpeningLimits.KnownSessionsMax + 1; i++)
        {
            _time.Now += TimeSpan.FromSeconds(1);
            Assert.Null(connection.Refusal(Command(isKey: false, i)));
        }

        _next = 1_000_000;
        Begin(connection, isKey: false, OpeningLimits.SessionsOfConnection.Burst - 1);
        Assert.Null(connection.Refusal(Command(isKey: false, OpeningLimits.KnownSessionsMax + 1)));
        Assert.NotNull(connection.Refusal(Command(isKey: false, 1)));
    }

    [Fact]
    public void What_begins_nothing_is_never_refused()
    {
        ConnectionOpenings connection = _node.Of(s_here);
        Begin(connection, isKey: false, OpeningLimits.SessionsOfConnection.Burst);
        Assert.NotNull(connection.Refusal(Command(isKey: false, _next)));
        Assert.Null(connection.Refusal(new Command { Kind = CommandKind.Set, Flags = CommandFlags.Session, SessionId = _next, Sequence = 1 }));
        Assert.Null(connection.Refusal(new Command { Kind = CommandKind.Set }));
    }

    [Fact]
    public void A_refusal_says_the_limit_and_when_to_try_again()
    {
        ConnectionOpenings connection = _node.Of(s_here);
        Begin(connection, isKey: false, OpeningLimits.SessionsOfConnection.Burst);
        Begin(connection, isKey: true, OpeningLimits.KeysOfConnection.Burst);
        Assert.Equal(
            "The connection has begun more sessions than one may: 256 at once and 10 per second. This call was not carried out; try again in a second.",
            connection.Refusal(Command(isKey: false, _next)));
        Assert.Equal(
            "The connection has begun more idempotency keys than one may: 10,000 at once and 1,000 per second. This call was not carried out; try again in a second.",
            connection.Refusal(Command(isKey: true, _next)));
    }

    [Fact]
    public void A_host_with_many_addresses_of_its_own_has_one_bucket()
    {
        Assert.Equal(OpeningLimits.SessionsOfAddress.Burst, Enumerable.Range(1, 100).Sum(i => Begin(_node.Of(IPAddress.Parse($"2001:db8::{i}")), isKey: false, 1_000)));
        Assert.Equal(1, Begin(_node.Of(IPAddress.Parse("2001:db8:0:1::1")), isKey: false, 1));
        Begin(_node.Of(s_here), isKey: false, 1);
        Begin(_node.Of(s_here.MapToIPv6()), isKey: false, 1);
        Assert.Equal(3, _node.Addresses);
    }

    [Fact]
    public void Addresses_that_owe_nothing_are_forgotten()
    {
        for (int i = 0; i < 20 * OpeningLimits.AddressesMin; i++)
        {
            _time.Now += TimeSpan.FromSeconds(1);
            Assert.Equal(1, Begin(_node.Of(new IPAddress(i)), isKey: false, 1));
            Assert.InRange(_node.Addresses, 1, OpeningLimits.AddressesMin);
        }
    }

    [Fact]
    public async Task A_unary_caller_is_refused_past_its_connections_share()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(
            static server => server.AddService(KeyValuesReflection.Descriptor.Services[0], static service => service
                .Unary<SetKeyValueRequest, SetKeyValueResponse>("SetKeyValue", static (_, call) =>
                {
                    Command command = new() { Kind = CommandKind.Set };
                    CallNumbers.AddTo(ref command, call);
                    return Task.FromResult(new SetKeyValueResponse { Set = true });
                })),
            middleware: _node.Counting);
        for (int i = 0; i < OpeningLimits.SessionsOfConnection.Burst; i++)
        {
            await SetAsync(host.Channel, _next++);
        }

        RpcException refusal = await Assert.ThrowsAsync<RpcException>(() => SetAsync(host.Channel, _next));
        Assert.Equal(StatusCode.ResourceExhausted, refusal.StatusCode);
        Assert.Equal("did-not-happen", refusal.Trailers.GetValue("kahuna-outcome"));
        Assert.StartsWith("The connection has begun more sessions than one may", refusal.Status.Detail, StringComparison.Ordinal);

        // Its sessions go on, and another connection begins its own.
        await SetAsync(host.Channel, 1);
        using GrpcChannel other = TestChannels.To(host.Address);
        await SetAsync(other, _next);
        _time.Now += TimeSpan.FromMilliseconds(100);
        await SetAsync(host.Channel, _next);
    }

    private static Task<SetKeyValueResponse> SetAsync(GrpcChannel channel, ulong session)
    {
        Metadata headers = new() { { CallNumbers.SessionHeader, session.ToString(CultureInfo.InvariantCulture) }, { CallNumbers.SequenceHeader, "1" } };
        return channel.UnaryAsync("/kahuna.v1.KeyValues/SetKeyValue", new SetKeyValueRequest(), SetKeyValueResponse.Parser, new CallOptions(headers)).WaitAsync(LastNet.Span);
    }

    /// <summary>So many different ones are begun: how many of them may be.</summary>
    private int Begin(ConnectionOpenings connection, bool isKey, int count)
    {
        int begun = 0;
        for (int i = 0; i < count; i++)
        {
            begun += connection.Refusal(Command(isKey, _next++)) is null ? 1 : 0;
        }

        return begun;
    }

    private static Command Command(bool isKey, ulong number) => new()
    {
        Kind = CommandKind.Set,
        Flags = CommandFlags.Session | CommandFlags.Opening,
        SessionId = isKey ? IdempotencyKey.AsKey(number) : IdempotencyKey.AsSession(number),
        Sequence = 1,
    };
}
