using Grpc.Core;
using Kahuna.Server.Api;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Cluster;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Transport;
using Kahuna.Tests.Partitions;
using Kahuna.Tests.Transport.Direct;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Frames;

namespace Kahuna.Tests.Api;

/// <summary>
/// A stream whose frames come over a direct link has all the limits of a call, and ends with it.
/// </summary>
public sealed class DirectExchangeTests
{
    private const int Mega = 1 << 20;

    private readonly DirectLinks _links = RawLink.Links(4);
    private readonly ReplyRoom _room = new();

    [Fact]
    public async Task Requests_and_answers_go_over_the_link_until_the_client_ends_its_call()
    {
        using PipedExchange exchange = Open(new CallLimits());
        using RawLink link = await GreetAsync(exchange);
        for (int i = 0; i < 3; i++)
        {
            await link.SendAsync(Bad(1_000));
            Assert.True(await link.ReadUntilAsync(static (kind, _) => kind == FrameKind.Replies));
        }

        exchange.Complete();
        await exchange.Served.WaitAsync(LastNet.Span);
        Assert.False(await link.ReadUntilAsync(static (_, _) => false));
        Assert.Equal(0, _room.Used);
    }

    [Fact]
    public void A_client_that_does_not_ask_gets_no_ticket_nor_does_one_without_a_place()
    {
        using PipedExchange silent = new(Node(_links), new CallLimits());
        Assert.Null(silent.Ticket);
        using PipedExchange unserved = new(Node(null), new CallLimits(), wantsLink: true);
        Assert.Null(unserved.Ticket);
    }

    [Fact]
    public async Task A_client_that_greets_on_its_call_leaves_its_place_and_its_link()
    {
        DirectLinks links = RawLink.Links(1);
        using PipedExchange exchange = new(Node(links), new CallLimits(), wantsLink: true);
        Assert.NotNull(exchange.Ticket);
        await exchange.GreetAsync();
        Assert.NotNull(links.Offer(static _ => throw new NotSupportedException()));
    }

    [Fact]
    public async Task Frames_on_a_link_that_does_not_carry_the_stream_end_the_link_alone()
    {
        using PipedExchange exchange = Open(new CallLimits());
        using RawLink link = await RawLink.OpenAsync(_links, exchange.Ticket!);
        await exchange.GreetAsync();
        await link.SendAsync(PipedExchange.Hello());
        Assert.Equal(0, await link.ReadAsync(new byte[1]));
        Task sent = exchange.SendAsync(Bad(10));
        await exchange.ReadAsync(10);
        await sent;
        exchange.Complete();
        await exchange.Served.WaitAsync(LastNet.Span);
    }

    [Fact]
    public async Task Frames_on_the_call_of_a_stream_that_its_link_carries_end_the_stream()
    {
        using PipedExchange exchange = Open(new CallLimits());
        using RawLink link = await GreetAsync(exchange);
        _ = exchange.SendAsync(Bad(1));
        await EndsAsync(exchange, link, StatusCode.InvalidArgument, "cannot change back");
    }

    [Theory]
    [InlineData("0000000000", "malformed")]
    [InlineData("0000000004ffffffff", "malformed")]
    [InlineData("01000000040b000000", "compressed")]
    [InlineData("007fffffff", "bytes")]
    public async Task A_malformed_message_on_the_link_ends_the_stream_with_its_reason(string hex, string reason)
    {
        using PipedExchange exchange = Open(new CallLimits());
        using RawLink link = await GreetAsync(exchange);
        await link.SendAsync(Convert.FromHexString(hex));
        await EndsAsync(exchange, link, null, reason);
    }

    [Theory]
    [InlineData(0, "wire version")]
    [InlineData(1, "must be Hello")]
    public async Task A_first_message_that_is_no_greeting_ends_the_stream(int which, string reason)
    {
        using PipedExchange exchange = Open(new CallLimits());
        using RawLink link = await RawLink.OpenAsync(_links, exchange.Ticket!);
        await link.SendAsync(which == 0 ? PipedExchange.Hello(version: 99) : Bad(1));
        await EndsAsync(exchange, link, null, reason);
    }

    [Fact]
    public async Task A_link_that_fails_before_the_greeting_leaves_the_call()
    {
        using PipedExchange exchange = Open(new CallLimits());
        using RawLink link = await RawLink.OpenAsync(_links, exchange.Ticket!);

        // A message that is longer than a greeting can be.
        await link.SendAsync([0, 0, 0, 0x40, 0]);
        Assert.Equal(0, await link.ReadAsync(new byte[1]));
        await exchange.GreetAsync().WaitAsync(LastNet.Minute);
        exchange.Complete();
        await exchange.Served.WaitAsync(LastNet.Span);
    }

    [Fact]
    public async Task A_link_that_is_lost_ends_its_call()
    {
        using PipedExchange exchange = Open(new CallLimits());
        RawLink link = await GreetAsync(exchange);
        link.Dispose();
        Exception ended = await Assert.ThrowsAnyAsync<Exception>(() => exchange.Served.WaitAsync(LastNet.Minute));
        Assert.IsNotType<TimeoutException>(ended);
        Assert.Equal(0, _room.Used);
    }

    [Fact]
    public async Task A_message_that_stays_incomplete_ends_the_call_and_a_silent_link_does_not()
    {
        CallLimits limits = new() { RequestTimeout = TimeSpan.FromSeconds(4) };
        using PipedExchange exchange = Open(limits);
        using RawLink link = await GreetAsync(exchange);
        await Task.Delay(limits.RequestTimeout * 1.5);
        Assert.False(exchange.Served.IsCompleted);
        await link.SendAsync(Bad(10)[..^1]);
        Exception ended = await Assert.ThrowsAnyAsync<Exception>(() => exchange.Served.WaitAsync(LastNet.Minute));
        Assert.IsNotType<TimeoutException>(ended);
        Assert.False(await link.ReadUntilAsync(static (_, _) => false));
        Assert.Equal(0, limits.IncompleteRequests.Used);
    }

    [Fact]
    public async Task A_client_that_reads_nothing_is_not_read_and_then_cut_off()
    {
        CallLimits limits = new() { ReplyTimeout = TimeSpan.FromSeconds(2), RequestTimeout = LastNet.Span };
        using PipedExchange exchange = Open(limits);
        using RawLink link = await GreetAsync(exchange);
        byte[] frame = Bad(1_000);
        Task flood = FloodAsync();
        Exception ended = await Assert.ThrowsAnyAsync<Exception>(() => exchange.Served.WaitAsync(LastNet.Minute));
        Assert.IsNotType<TimeoutException>(ended);
        await flood.WaitAsync(LastNet.Minute);
        Assert.Equal(0, _room.Used);

        async Task FloodAsync()
        {
            try
            {
                // More than the sockets of both ends take.
                for (int i = 0; i < 100_000; i++)
                {
                    await link.SendAsync(frame);
                }
            }
            catch (IOException)
            {
                return;
            }

            Assert.Fail("The node took everything in.");
        }
    }

    [Fact]
    public async Task A_node_that_stops_says_so_over_the_link()
    {
        using CancellationTokenSource stop = new();
        using PipedExchange exchange = new(Node(_links, stop.Token), new CallLimits(), wantsLink: true);
        using RawLink link = await GreetAsync(exchange);
        await stop.CancelAsync();
        Assert.True(await link.ReadUntilAsync(static (kind, _) => kind == FrameKind.GoAway));
        exchange.Complete();
        await exchange.Served.WaitAsync(LastNet.Span);
    }

    private static byte[] Bad(int count) => PipedExchange.Requests(
        count, 0, new Command { Kind = CommandKind.Get, Durability = Durability.Persistent });

    private async Task EndsAsync(PipedExchange exchange, RawLink link, StatusCode? status, string reason)
    {
        RpcException ended = await Assert.ThrowsAsync<RpcException>(() => exchange.Served.WaitAsync(LastNet.Minute));
        Assert.Contains(reason, ended.Status.Detail, StringComparison.Ordinal);
        Assert.Equal(status ?? ended.StatusCode, ended.StatusCode);
        Assert.False(await link.ReadUntilAsync(static (_, _) => false));
        Assert.Equal(0, _room.Used);
    }

    private async Task<RawLink> GreetAsync(PipedExchange exchange)
    {
        RawLink link = await RawLink.OpenAsync(_links, exchange.Ticket!);
        await link.SendAsync(PipedExchange.Hello());
        Assert.True(await link.ReadUntilAsync(static (kind, _) => kind == FrameKind.Map));
        return link;
    }

    private PipedExchange Open(CallLimits limits) => new(Node(_links), limits, wantsLink: true);

    private ClusterService Node(DirectLinks? links, CancellationToken stop = default)
    {
        ClusterView view = new(
            new ClusterIdentity("test", new NodeId(1), "1", 1, [(new NodeId(1), new Uri("https://127.0.0.1:1"))]),
            hasEphemeral: false);
        view.ReadCommitIndexFrom(static _ => 0);
        ModelCluster cluster = new(1) { Lends = true };
        cluster.Settle();
        RequestAdmission admission = new(new Router(cluster[1].Loops!, view), Mega) { Room = _room };
        return new ClusterService(
            view, admission, new NodeCredential(new ClusterSecrets()), stop, watches: null,
            links is null ? null : new LinkOffers(links.Offer, links.Withdraw));
    }
}
