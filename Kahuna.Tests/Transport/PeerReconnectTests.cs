using System.Net;
using System.Net.Sockets;
using Kahuna.Server.Hosting.Certificates;
using Kahuna.Tests.Hosting;

namespace Kahuna.Tests.Transport;

/// <summary>Peers that go, come back, or never were there.</summary>
public sealed class PeerReconnectTests : IDisposable
{
    private readonly TemporaryDirectory _directory = new();
    private readonly NodeTls _tls;

    public PeerReconnectTests() => _tls = new DevelopmentCertificates(_directory.Path, TimeProvider.System).Ensure([]);

    public void Dispose() => _directory.Dispose();

    [Fact]
    public async Task A_restarted_node_is_found_again()
    {
        TestNode one = await TestNode.StartAsync(TestNode.Options(1, _tls));
        await using TestNode two = await TestNode.StartAsync(TestNode.Options(2, _tls, one.Address));
        two.Frames.WaitChanges(true);
        await one.DisposeAsync();
        two.Frames.WaitChanges(true, false);
        Assert.False(two.Send(1, "lost"u8));

        await using TestNode again = await TestNode.StartAsync(TestNode.Options(1, _tls), one.Address.Port);
        two.Frames.WaitChanges(true, false, true);
        Assert.True(two.Send(1, "found"u8));
        Assert.Equal("found"u8, again.Frames.WaitFrames(1)[0]);
    }

    [Fact]
    public async Task An_address_that_does_not_answer_is_given_up_in_time()
    {
        // A full backlog drops greetings without an answer, as a firewall does.
        using Socket listener = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        listener.Listen(0);
        List<Socket> held = [];
        for (int i = 0; i < 4; i++)
        {
            Socket socket = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
            held.Add(socket);
            _ = socket.ConnectAsync(listener.LocalEndPoint!)
                .ContinueWith(task => task.Exception, TaskScheduler.Default);
        }

        Uri silent = new($"https://127.0.0.1:{((IPEndPoint)listener.LocalEndPoint!).Port}");
        await using TestNode two = await TestNode.StartAsync(
            TestNode.Options(2, _tls, silent) with { HandshakeTimeout = TimeSpan.FromMilliseconds(200) });
        await two.Log.WaitFor("Cannot connect to node 1");
        held.ForEach(socket => socket.Dispose());
    }
}
