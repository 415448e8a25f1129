using System.Net;
using System.Net.Sockets;
using Kahuna.Server.Transport;
using Kahuna.Tests.Api.Grpc;
using Microsoft.AspNetCore.Connections;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Logging.Abstractions;

namespace Kahuna.Tests.Transport;

/// <summary>Nothing that comes to the port ends the accept loop.</summary>
public sealed class PeerListenerTests
{
    private static readonly TimeSpan s_patience = LastNet.Span;

    [Theory]
    [InlineData("160301000001000000")]
    [InlineData("1603010001010000000303")]
    [InlineData("16030100030100000000")]
    [InlineData("16")]
    [InlineData("00")]
    public async Task Hostile_first_bytes_leave_the_endpoint_serving(string hex)
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        for (int i = 0; i < 8; i++)
        {
            using Socket stranger = await ConnectAsync(host.Address.Port, Convert.FromHexString(hex));
        }

        await FloodClient.DescribeAsync(host.Channel).WaitAsync(s_patience);
    }

    [Fact]
    public async Task A_hello_that_the_platform_cannot_read_is_refused_as_others_are()
    {
        LogRecorder log = new() { Level = LogLevel.Warning };
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(loggers: log);

        // A hello of no bytes at all, whose version is read all the same.
        using Socket stranger = await ConnectAsync(host.Address.Port, Convert.FromHexString("160301000401000000"));
        Assert.True(await EndsAsync(stranger));
        Assert.DoesNotContain(log.Lines, static line => !line.Contains("bind method", StringComparison.Ordinal));
    }

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task An_unexpected_error_costs_its_connection_and_is_reported(bool greetingIsThere)
    {
        List<string> trouble = [];
        ListenerCallbacks owner = new(
            _ => throw new InvalidOperationException("planted"),
            reason =>
            {
                lock (trouble)
                {
                    trouble.Add(reason);
                }
            },
            error => Assert.Fail(error.Message));
        using Socket socket = Bind();
        byte[] greeting = await Greetings.RealAsync("kahuna-peer/1");
        using Socket peer = await ConnectAsync(socket, greetingIsThere ? greeting : []);
        await using PeerListener listener = Listen(socket, owner);
        if (!greetingIsThere)
        {
            await peer.SendAsync(greeting);
        }

        Assert.True(await EndsAsync(peer));
        using Socket client = await ConnectAsync(socket, "GET / HTTP/1.1"u8.ToArray());
        ConnectionContext? connection = await listener.AcceptAsync().AsTask().WaitAsync(s_patience);

        Assert.NotNull(connection);
        await connection.DisposeAsync();
        lock (trouble)
        {
            Assert.Contains("planted", Assert.Single(trouble), StringComparison.Ordinal);
        }
    }

    [Fact]
    public async Task A_loop_that_ends_all_the_same_is_told_to_the_owner()
    {
        TaskCompletionSource<Exception> failed = new(TaskCreationOptions.RunContinuationsAsynchronously);
        using Socket socket = Bind();
        using Socket peer = await ConnectAsync(socket, await Greetings.RealAsync("kahuna-peer/1"));
        await using PeerListener listener = Listen(socket, new ListenerCallbacks(
            _ => throw new InvalidOperationException("first"),
            _ => throw new InvalidOperationException("second"),
            failed.SetResult));

        Exception error = await failed.Task.WaitAsync(s_patience);
        Assert.Contains("second", error.Message, StringComparison.Ordinal);
        Assert.Null(await listener.AcceptAsync().AsTask().WaitAsync(s_patience));
    }

    [Fact]
    public async Task A_listener_that_is_unbound_has_not_failed()
    {
        PeerListener listener = Listen(
            Bind(),
            new ListenerCallbacks(_ => { }, reason => Assert.Fail(reason), error => Assert.Fail(error.Message)));
        await listener.UnbindAsync();

        Assert.Null(await listener.AcceptAsync().AsTask().WaitAsync(s_patience));
        await listener.DisposeAsync();
    }

    private static Socket Bind()
    {
        Socket socket = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        socket.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        socket.Listen();
        return socket;
    }

    private static PeerListener Listen(Socket socket, ListenerCallbacks owner) =>
        new(
            socket,
            owner,
            new ListenerLimits(new DescriptorLimit(1 << 20), new AddressLimiter(1)),
            NullLoggerFactory.Instance);

    private static Task<Socket> ConnectAsync(Socket listening, byte[] first) =>
        ConnectAsync(((IPEndPoint)listening.LocalEndPoint!).Port, first);

    private static async Task<Socket> ConnectAsync(int port, byte[] first)
    {
        Socket socket = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        await socket.ConnectAsync(IPAddress.Loopback, port);
        await socket.SendAsync(first);
        return socket;
    }

    /// <summary>Waits until the other side has closed the connection, or reset it.</summary>
    private static async Task<bool> EndsAsync(Socket socket)
    {
        using CancellationTokenSource limit = new(s_patience);
        try
        {
            return await socket.ReceiveAsync(new byte[1], limit.Token) == 0;
        }
        catch (SocketException)
        {
            return true;
        }
    }
}
