using System.Globalization;
using System.Net;
using Grpc.Core;
using Grpc.Net.Client;
using Kahuna.Server.Api;
using Kahuna.Server.Api.Protos;
using Kahuna.Server.Api.RateLimits;
using Kahuna.Server.State.Rows;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Tests.Hosting;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Api.RateLimits;

/// <summary>
/// How many sessions and idempotency keys a connection, and an address, may begin. The clock is the test's.
/// </summary>
public sealed class ConnectionRateLimiterTests
{
    private static readonly IPAddress s_here = IPAddress.Parse("10.0.0.1");
    private static readonly IPAddress s_there = IPAddress.Parse("10.0.0.2");

    private readonly SteppedTime _time = new();
    private readonly NodeRateLimiter _node;
    private ulong _next = 1;

    public ConnectionRateLimiterTests() => _node = new NodeRateLimiter(_time);

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public void A_connection_begins_so_many_at_once_and_then_so_many_a_second(bool isKey)
    {
        RateLimit rate = isKey ? SessionRateLimits.KeysOfConnection : SessionRateLimits.SessionsOfConnection;
        ConnectionRateLimiter noisy = _node.ForConnection(s_here);
        Assert.Equal(rate.Burst, Begin(noisy, isKey, 3 * rate.Burst));
        _time.Now += TimeSpan.FromSeconds(3);
        Assert.Equal(3 * rate.PerSecond, Begin(noisy, isKey, 3 * rate.Burst));

        // Another connection has its own, and the other kind too.
        Assert.Equal(10, Begin(_node.ForConnection(s_here), isKey, 10));
        Assert.Equal(10, Begin(noisy, !isKey, 10));
        _time.Now += TimeSpan.FromHours(1);
        Assert.Equal(rate.Burst, Begin(noisy, isKey, 3 * rate.Burst));
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public void Connections_of_one_address_share_its_bucket_and_leave_others_alone(bool isKey)
    {
        RateLimit rate = isKey ? SessionRateLimits.KeysOfAddress : SessionRateLimits.SessionsOfAddress;
        Assert.Equal(
            rate.Burst, Enumerable.Range(0, 100).Sum(_ => Begin(_node.ForConnection(s_here), isKey, rate.Burst)));
        ConnectionRateLimiter late = _node.ForConnection(s_here);
        Assert.Contains(
            "The address exceeds the rate limit of new",
            late.Refusal(Command(isKey, _next++)),
            StringComparison.Ordinal);
        Assert.Equal(1, Begin(_node.ForConnection(s_there), isKey, 1));

        // What the address refused has cost the connection nothing.
        int most = (isKey ? SessionRateLimits.KeysOfConnection : SessionRateLimits.SessionsOfConnection).Burst;
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
        int most = (isKey ? SessionRateLimits.KeysOfConnection : SessionRateLimits.SessionsOfConnection).Burst;
        for (long ms = 0; ms <= limits.CommandLifeMs; ms += 10_000)
        {
            // As many connections as it takes to use the address up.
            int taken;
            do
            {
                taken = Begin(_node.ForConnection(s_here), isKey, most);
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
        ConnectionRateLimiter connection = _node.ForConnection(s_here);
        for (int i = 0; i < 5_000; i++)
        {
            Assert.Null(connection.Refusal(Command(isKey: false, 1_000_000)));
        }

        Assert.Equal(SessionRateLimits.SessionsOfConnection.Burst - 1, Begin(connection, isKey: false, 5_000));
        Assert.Null(connection.Refusal(Command(isKey: false, 1_000_000)));
    }

    [Fact]
    public void Of_the_sessions_that_are_known_the_oldest_goes_first()
    {
        ConnectionRateLimiter connection = _node.ForConnection(s_here);
        for (ulong i = 1; i <= SessionRateLimits.KnownSessionsMax + 1; i++)
        {
            _time.Now += TimeSpan.FromSeconds(1);
            Assert.Null(connection.Refusal(Command(isKey: false, i)));
        }

        _next = 1_000_000;
        Begin(connection, isKey: false, SessionRateLimits.SessionsOfConnection.Burst - 1);
        Assert.Null(connection.Refusal(Command(isKey: false, SessionRateLimits.KnownSessionsMax + 1)));
        Assert.NotNull(connection.Refusal(Command(isKey: false, 1)));
    }

    [Fact]
    public void What_begins_nothing_is_never_refused()
    {
        ConnectionRateLimiter connection = _node.ForConnection(s_here);
        Begin(connection, isKey: false, SessionRateLimits.SessionsOfConnection.Burst);
        Assert.NotNull(connection.Refusal(Command(isKey: false, _next)));
        Assert.Null(connection.Refusal(
            new Command { Kind = CommandKind.Set, Flags = CommandFlags.Session, SessionId = _next, Sequence = 1 }));
        Assert.Null(connection.Refusal(new Command { Kind = CommandKind.Set }));
    }

    [Fact]
    public void A_refusal_says_the_limit_and_when_to_try_again()
    {
        ConnectionRateLimiter connection = _node.ForConnection(s_here);
        Begin(connection, isKey: false, SessionRateLimits.SessionsOfConnection.Burst);
        Begin(connection, isKey: true, SessionRateLimits.KeysOfConnection.Burst);
        Assert.Equal(
            "The connection exceeds the rate limit of new sessions: 256 at once and 10 per second. This call was not "
                + "executed; try again in a second.",
            connection.Refusal(Command(isKey: false, _next)));
        Assert.Equal(
            "The connection exceeds the rate limit of new idempotency keys: 10,000 at once and 1,000 per second. This "
                + "call was not executed; try again in a second.",
            connection.Refusal(Command(isKey: true, _next)));
    }

    [Fact]
    public void A_host_with_many_addresses_of_its_own_has_one_bucket()
    {
        Assert.Equal(
            SessionRateLimits.SessionsOfAddress.Burst,
            Enumerable.Range(1, 100)
                .Sum(i => Begin(_node.ForConnection(IPAddress.Parse($"2001:db8::{i}")), isKey: false, 1_000)));
        Assert.Equal(1, Begin(_node.ForConnection(IPAddress.Parse("2001:db8:0:1::1")), isKey: false, 1));
        Begin(_node.ForConnection(s_here), isKey: false, 1);
        Begin(_node.ForConnection(s_here.MapToIPv6()), isKey: false, 1);
        Assert.Equal(3, _node.Addresses);
    }

    [Fact]
    public void Addresses_that_owe_nothing_are_forgotten()
    {
        for (int i = 0; i < 20 * SessionRateLimits.AddressesMin; i++)
        {
            _time.Now += TimeSpan.FromSeconds(1);
            Assert.Equal(1, Begin(_node.ForConnection(new IPAddress(i)), isKey: false, 1));
            Assert.InRange(_node.Addresses, 1, SessionRateLimits.AddressesMin);
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
            middleware: _node.Middleware);
        for (int i = 0; i < SessionRateLimits.SessionsOfConnection.Burst; i++)
        {
            await SetAsync(host.Channel, _next++);
        }

        RpcException refusal = await Assert.ThrowsAsync<RpcException>(() => SetAsync(host.Channel, _next));
        Assert.Equal(StatusCode.ResourceExhausted, refusal.StatusCode);
        Assert.Equal("did-not-happen", refusal.Trailers.GetValue("kahuna-outcome"));
        Assert.StartsWith(
            "The connection exceeds the rate limit of new sessions", refusal.Status.Detail, StringComparison.Ordinal);

        // Its sessions go on, and another connection begins its own.
        await SetAsync(host.Channel, 1);
        using GrpcChannel other = TestChannels.To(host.Address);
        await SetAsync(other, _next);
        _time.Now += TimeSpan.FromMilliseconds(100);
        await SetAsync(host.Channel, _next);
    }

    private static Task<SetKeyValueResponse> SetAsync(GrpcChannel channel, ulong session)
    {
        Metadata headers = new()
        {
            { CallNumbers.SessionHeader, session.ToString(CultureInfo.InvariantCulture) },
            { CallNumbers.SequenceHeader, "1" },
        };
        return channel.UnaryAsync(
            "/kahuna.v1.KeyValues/SetKeyValue",
            new SetKeyValueRequest(),
            SetKeyValueResponse.Parser,
            new CallOptions(headers))
            .WaitAsync(LastNet.Span);
    }

    /// <summary>So many different ones are begun: how many of them may be.</summary>
    private int Begin(ConnectionRateLimiter connection, bool isKey, int count)
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
