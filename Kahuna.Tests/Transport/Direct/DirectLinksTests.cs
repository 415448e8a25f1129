using System.Net.Sockets;
using Kahuna.Server.Transport;
using Kahuna.Wire.Sockets;

namespace Kahuna.Tests.Transport.Direct;

/// <summary>Who gets a direct link, and a thread of the node.</summary>
public sealed class DirectLinksTests
{
    [Fact]
    public async Task The_connection_that_shows_the_ticket_carries_the_stream()
    {
        DirectLinks links = RawLink.Links(1);
        HeldStream stream = new();
        string ticket = links.Offer(stream.Run)!;
        Assert.Matches("^[0-9A-F]{32}$", ticket);
        using RawLink link = await RawLink.OpenAsync(links, ticket);
        await link.SendAsync([1, 2, 3]);
        await stream.Served.WaitAsync(LastNet.Span);
        Assert.Equal([1, 2, 3], stream.Received);
        Assert.Equal(1, links.Open);
        stream.Leave();
        Assert.Equal(0, await link.ReadAsync(new byte[1]));
        await EndedAsync(links);
    }

    [Theory]
    [InlineData("00000000000000000000000000000000")]
    [InlineData("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0")]
    [InlineData("GET / HTTP/1.1\r\nHost: kahuna\r\n\r\n")]
    public async Task Another_ticket_is_nobodys_and_takes_nothing_from_the_right_one(string wrong)
    {
        DirectLinks links = RawLink.Links(1);
        HeldStream stream = new();
        string ticket = links.Offer(stream.Run)!;
        using (RawLink stranger = await RawLink.ConnectAsync(links))
        {
            Assert.False(await stranger.IsTakenAsync(wrong));
        }

        using RawLink link = await ConnectLaterAsync(links);
        Assert.True(await link.IsTakenAsync(ticket));
        stream.Leave();
    }

    [Fact]
    public async Task A_ticket_is_good_for_one_connection()
    {
        DirectLinks links = RawLink.Links(2);
        (HeldStream stream, HeldStream other) = (new(), new());
        string ticket = links.Offer(stream.Run)!;
        _ = links.Offer(other.Run);
        using RawLink link = await RawLink.OpenAsync(links, ticket);
        using RawLink again = await RawLink.ConnectAsync(links);
        Assert.False(await again.IsTakenAsync(ticket));
        stream.Leave();
    }

    [Fact]
    public async Task A_ticket_that_is_withdrawn_is_nobodys()
    {
        DirectLinks links = RawLink.Links(2);
        string ticket = links.Offer(new HeldStream().Run)!;
        _ = links.Offer(new HeldStream().Run);
        links.Withdraw(ticket);
        using RawLink link = await RawLink.ConnectAsync(links);
        Assert.False(await link.IsTakenAsync(ticket));
    }

    [Fact]
    public async Task There_are_as_many_links_and_tickets_as_the_node_may_have()
    {
        DirectLinks links = RawLink.Links(2);
        (HeldStream one, HeldStream two) = (new(), new());
        string first = links.Offer(one.Run)!;
        string second = links.Offer(two.Run)!;
        Assert.Null(links.Offer(new HeldStream().Run));
        using RawLink link = await RawLink.OpenAsync(links, first);
        Assert.Null(links.Offer(new HeldStream().Run));
        links.Withdraw(second);
        Assert.NotNull(links.Offer(new HeldStream().Run));
        one.Leave();
        await link.SendAsync(one.Received);
        await EndedAsync(links);
        Assert.NotNull(links.Offer(new HeldStream().Run));
        Assert.Null(RawLink.Links(0).Offer(new HeldStream().Run));
    }

    [Fact]
    public void A_stranger_gets_no_thread_while_nobody_is_to_come()
    {
        DirectLinks links = RawLink.Links(2);
        Assert.True(IsReset(links));

        // One may come, and somebody is trying already.
        _ = links.Offer(new HeldStream().Run);
        (Socket client, Socket node) = RawLink.Pair();
        links.Accept(node, null);
        Assert.True(IsReset(links));
        client.Dispose();
    }

    [Fact]
    public async Task A_stranger_that_says_nothing_is_cut_off()
    {
        DirectLinks links = RawLink.Links(1);
        HeldStream stream = new();
        string ticket = links.Offer(stream.Run)!;
        (Socket client, Socket node) = RawLink.Pair();
        links.Accept(node, null);
        client.ReceiveTimeout = (int)LastNet.Minute.TotalMilliseconds;
        Assert.Equal(0, client.Receive(new byte[1]));
        client.Dispose();
        using RawLink link = await ConnectLaterAsync(links);
        Assert.True(await link.IsTakenAsync(ticket));
        stream.Leave();
    }

    [Theory]
    [InlineData("16030100050100000103")]
    [InlineData("474554202f20485454502f312e310d0a0d0a")]
    [InlineData("ffffffffffffffffffffffffffffffffffffffff")]
    public async Task Bytes_that_are_no_TLS_end_their_connection_only(string hex)
    {
        LogRecorder log = new();
        DirectLinks links = RawLink.Links(1, log);
        HeldStream stream = new();
        string ticket = links.Offer(stream.Run)!;
        (Socket client, Socket node) = RawLink.Pair();
        links.Accept(node, null);
        client.Send(Convert.FromHexString(hex));
        client.ReceiveTimeout = (int)LastNet.Minute.TotalMilliseconds;
        while (Receive(client) > 0)
        {
            // The alert.
        }

        client.Dispose();
        using RawLink link = await ConnectLaterAsync(links);
        Assert.True(await link.IsTakenAsync(ticket));
        stream.Leave();
    }

    [Fact]
    public async Task A_stream_that_throws_ends_its_link_and_leaves_its_place()
    {
        DirectLinks links = RawLink.Links(1);
        string ticket = links.Offer(static _ => throw new InvalidOperationException("planted"))!;
        using RawLink link = await RawLink.OpenAsync(links, ticket);
        Assert.Equal(0, await link.ReadAsync(new byte[1]));
        await EndedAsync(links);
        Assert.NotNull(links.Offer(new HeldStream().Run));
    }

    [Fact]
    public void Links_that_have_stopped_offer_nothing_and_keep_no_stranger()
    {
        DirectLinks links = RawLink.Links(1);
        _ = links.Offer(new HeldStream().Run);
        (Socket client, Socket node) = RawLink.Pair();
        links.Accept(node, null);
        links.Stop();
        client.ReceiveTimeout = 1_000 * 60;
        Assert.Equal(0, Receive(client));
        client.Dispose();
        Assert.Null(links.Offer(new HeldStream().Run));
        Assert.True(IsReset(links));
    }

    private static bool IsReset(DirectLinks links)
    {
        (Socket client, Socket node) = RawLink.Pair();
        using Socket end = client;
        links.Accept(node, null);
        end.ReceiveTimeout = (int)LastNet.Minute.TotalMilliseconds;
        return node.SafeHandle.IsClosed && Receive(end) == 0;
    }

    private static int Receive(Socket socket)
    {
        try
        {
            return socket.Receive(new byte[256]);
        }
        catch (SocketException error) when (error.SocketErrorCode == SocketError.ConnectionReset)
        {
            return 0;
        }
    }

    /// <summary>Connects as soon as the one before is gone.</summary>
    private static async Task<RawLink> ConnectLaterAsync(DirectLinks links)
    {
        for (long until = Environment.TickCount64 + (long)LastNet.Minute.TotalMilliseconds; ;)
        {
            try
            {
                return await RawLink.ConnectAsync(links);
            }
            catch (Exception error) when (error is IOException && Environment.TickCount64 < until)
            {
                await Task.Delay(10);
            }
        }
    }

    private static async Task EndedAsync(DirectLinks links)
    {
        long until = Environment.TickCount64 + (long)LastNet.Minute.TotalMilliseconds;
        while (links.Open > 0)
        {
            Assert.True(Environment.TickCount64 < until, $"{links.Open} links");
            await Task.Delay(1);
        }
    }

    /// <summary>Reads three bytes, and keeps the link until it is told to leave.</summary>
    private sealed class HeldStream
    {
        private readonly TaskCompletionSource _served = new(TaskCreationOptions.RunContinuationsAsynchronously);
        private readonly ManualResetEventSlim _leave = new();

        public byte[] Received { get; } = new byte[3];

        public Task Served => _served.Task;

        public void Leave() => _leave.Set();

        public void Run(DirectConnection link)
        {
            for (int at = 0; at < Received.Length && !_leave.IsSet;)
            {
                at += link.Read(Received.AsSpan(at)) is var count and > 0
                    ? count : throw new EndOfStreamException();
            }

            _served.TrySetResult();
            _leave.Wait();
        }
    }
}
