using System.Net;
using System.Net.Sockets;
using Kahuna.Server.Transport;
using Microsoft.AspNetCore.Connections;
using Microsoft.Extensions.Logging.Abstractions;

namespace Kahuna.Tests.Transport;

/// <summary>Connections of one address are limited, and each that ends makes room for another.</summary>
public sealed class AddressLimiterTests
{
    private static readonly byte[] s_request = "GET / HTTP/1.1"u8.ToArray();

    private readonly List<IPAddress> _refused = [];

    [Fact]
    public void An_address_has_its_number_and_no_more()
    {
        AddressLimiter limiter = Limiter(2);
        AddressSlot?[] slots = [Enter(limiter, "10.0.0.1"), Enter(limiter, "10.0.0.1")];

        Assert.All(slots, Assert.NotNull);
        Assert.False(limiter.TryEnter(IPAddress.Parse("10.0.0.1"), out AddressSlot? none));
        Assert.Null(none);
        Assert.NotNull(Enter(limiter, "10.0.0.2"));
        Assert.Equal((3, 2, 1L), limiter.Figures);
        Assert.Equal([IPAddress.Parse("10.0.0.1")], _refused);

        // A place is given back once, however often it is said.
        slots[0]!.Dispose();
        slots[0]!.Dispose();
        Assert.NotNull(Enter(limiter, "10.0.0.1"));
        Assert.False(limiter.TryEnter(IPAddress.Parse("10.0.0.1"), out _));
    }

    [Theory]
    [InlineData("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", false)]
    [InlineData("2001:db8:1:2::1", "2001:db8:1:3::1", true)]
    [InlineData("10.0.0.1", "::ffff:10.0.0.1", false)]
    [InlineData("10.0.0.1", "10.0.0.2", true)]
    [InlineData("0.0.0.0", "::1:0:0:0", true)]
    public void An_ipv6_network_is_one_address(string first, string second, bool isAnother)
    {
        AddressLimiter limiter = Limiter(1);
        Enter(limiter, first);

        Assert.Equal(isAnother, limiter.TryEnter(IPAddress.Parse(second), out _));
    }

    [Fact]
    public void Loopback_and_exempt_addresses_are_not_counted()
    {
        AddressLimiter limiter = new(1);
        AddressLimiter exempting = Limiter(1, address => address.Equals(IPAddress.Parse("10.0.0.9")));
        AddressLimiter none = Limiter(0);
        for (int i = 0; i < 3; i++)
        {
            Assert.Null(Enter(limiter, "127.0.0.1"));
            Assert.Null(Enter(limiter, "::1"));
            Assert.Null(Enter(limiter, "::ffff:127.0.0.1"));
            Assert.Null(Enter(exempting, "::ffff:10.0.0.9"));
            Assert.Null(Enter(none, "10.0.0.1"));
        }

        Assert.Equal((0, 0, 0L), limiter.Figures);
    }

    [Fact]
    public void Addresses_that_are_gone_leave_nothing()
    {
        AddressLimiter limiter = Limiter(4);
        for (int i = 0; i < 10_000; i++)
        {
            Enter(limiter, $"10.{i / 65536}.{i / 256 % 256}.{i % 256}")!.Dispose();
        }

        Assert.Equal((0, 0, 0L), limiter.Figures);
    }

    [Fact]
    public async Task A_connection_too_many_is_closed_and_each_that_ends_makes_room()
    {
        AddressLimiter limiter = Limiter(2);
        using Socket listening = Bind();
        await using PeerListener listener = Listen(listening, limiter);
        using Socket first = await ConnectAsync(listening);
        using Socket second = await ConnectAsync(listening);
        ConnectionContext one = (await listener.AcceptAsync())!;
        ConnectionContext two = (await listener.AcceptAsync())!;
        Assert.True(await IsRefusedAsync(listening));
        Assert.Equal((2, 1, 1L), limiter.Figures);

        // However it ends: closed by the client and by us, or aborted.
        first.Dispose();
        await one.DisposeAsync();
        Assert.Equal(1, limiter.Figures.Connections);
        two.Abort(new ConnectionAbortedException("planted"));
        await two.DisposeAsync();
        await two.DisposeAsync();
        Assert.Equal((0, 0, 1L), limiter.Figures);

        using Socket fourth = await ConnectAsync(listening);
        ConnectionContext again = (await listener.AcceptAsync())!;
        Assert.Equal(1, limiter.Figures.Connections);
        await again.DisposeAsync();
    }

    [Fact]
    public async Task Connections_that_say_nothing_or_are_reset_count_until_they_end()
    {
        AddressLimiter limiter = Limiter(8);
        using Socket listening = Bind();
        PeerListener listener = Listen(listening, limiter);
        using Socket silent = await ConnectAsync(listening, []);
        using Socket reset = await ConnectAsync(listening, []);
        await UntilAsync(() => limiter.Figures.Connections == 2);
        reset.LingerState = new LingerOption(enable: true, seconds: 0);
        reset.Close();
        Task taking = Task.Run(async () =>
        {
            while (await listener.AcceptAsync() is { } connection)
            {
                await connection.DisposeAsync();
            }
        });
        await UntilAsync(() => limiter.Figures.Connections == 0);
        await listener.DisposeAsync();
        await taking;
    }

    [Fact]
    public async Task What_nobody_has_taken_over_ends_with_the_listener()
    {
        AddressLimiter limiter = Limiter(8);
        using Socket listening = Bind();
        PeerListener listener = Listen(listening, limiter);
        using Socket waiting = await ConnectAsync(listening);
        using Socket silent = await ConnectAsync(listening, []);
        await UntilAsync(() => limiter.Figures.Connections == 2);
        await listener.DisposeAsync();
        await UntilAsync(() => limiter.Figures.Connections == 0);
    }

    [Fact]
    public async Task A_link_of_a_node_has_a_limit_of_its_own()
    {
        AddressLimiter limiter = Limiter(1);
        using Socket listening = Bind();
        TaskCompletionSource<Socket> taken = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await using PeerListener listener = Listen(listening, limiter, taken.SetResult);
        byte[] greeting = await Greetings.RealAsync("kahuna-peer/1");
        using Socket peer = await ConnectAsync(listening, greeting[..10]);
        await UntilAsync(() => limiter.Figures.Connections == 1);
        await peer.SendAsync(greeting.AsMemory(10));
        using Socket link = await taken.Task.WaitAsync(LastNet.Span);

        Assert.Equal((0, 0, 0L), limiter.Figures);
    }

    private AddressLimiter Limiter(int max, Func<IPAddress, bool>? isExempt = null) => new(max)
    {
        IsExempt = isExempt ?? (static _ => false),
        Refused = _refused.Add,
    };

    private static AddressSlot? Enter(AddressLimiter limiter, string address)
    {
        Assert.True(limiter.TryEnter(IPAddress.Parse(address), out AddressSlot? slot));
        return slot;
    }

    private static Socket Bind()
    {
        Socket socket = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        socket.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        socket.Listen();
        return socket;
    }

    private static PeerListener Listen(Socket socket, AddressLimiter limiter, Action<Socket>? takePeer = null) => new(
        socket,
        new ListenerCallbacks(takePeer ?? (static _ => { }), static _ => { }, static _ => { }),
        new ListenerLimits(new DescriptorLimit(1 << 20), limiter),
        NullLoggerFactory.Instance);

    private static Task<Socket> ConnectAsync(Socket listening) => ConnectAsync(listening, s_request);

    private static async Task<Socket> ConnectAsync(Socket listening, byte[] first)
    {
        Socket socket = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        await socket.ConnectAsync(listening.LocalEndPoint!);
        await socket.SendAsync(first);
        return socket;
    }

    /// <summary>
    /// Connects, and waits until the other side has closed the connection. It may be reset before the connecting has
    /// ended here.
    /// </summary>
    private static async Task<bool> IsRefusedAsync(Socket listening)
    {
        using CancellationTokenSource limit = new(LastNet.Span);
        using Socket socket = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        try
        {
            await socket.ConnectAsync(listening.LocalEndPoint!, limit.Token);
            return await socket.ReceiveAsync(new byte[1], limit.Token) == 0;
        }
        catch (SocketException)
        {
            return true;
        }
    }

    private static async Task UntilAsync(Func<bool> condition)
    {
        using CancellationTokenSource limit = new(LastNet.Span);
        while (!condition())
        {
            await Task.Delay(2, limit.Token);
        }
    }
}
