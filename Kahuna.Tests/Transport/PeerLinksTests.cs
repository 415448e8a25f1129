using System.Buffers.Binary;
using System.Net.Security;
using Kahuna.Server.Hosting.Certificates;
using Kahuna.Server.Primitives;
using Kahuna.Server.Transport;
using Kahuna.Tests.Hosting;
using Kahuna.Tests.Partitions;

namespace Kahuna.Tests.Transport;

/// <summary>Links over real sockets and TLS on loopback.</summary>
public sealed class PeerLinksTests : IDisposable
{
    private readonly TemporaryDirectory _directory = new();
    private readonly NodeTls _tls;

    public PeerLinksTests() => _tls = new DevelopmentCertificates(_directory.Path, TimeProvider.System).Ensure([]);

    public void Dispose() => _directory.Dispose();

    [Fact]
    public async Task Two_nodes_link_and_talk_both_ways()
    {
        await using TestNode one = await TestNode.StartAsync(TestNode.Options(1, _tls));
        await using TestNode two = await TestNode.StartAsync(TestNode.Options(2, _tls, one.Address));
        one.Frames.WaitChanges(true);
        two.Frames.WaitChanges(true);

        Assert.True(one.Send(2, "ping"u8));
        Assert.Equal("ping"u8, two.Frames.WaitFrames(1)[0]);
        Assert.True(two.Send(1, "pong"u8));
        Assert.Equal("pong"u8, one.Frames.WaitFrames(1)[0]);
        Assert.True(one.Links.IsUp(new NodeId(2)));
        Assert.False(one.Links.IsUp(new NodeId(3)));
        Assert.False(one.Send(3, "nobody"u8));
        Assert.False(one.Send(9, "nobody"u8));
    }

    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    public async Task Clients_use_the_same_port(int version)
    {
        await using TestNode one = await TestNode.StartAsync(TestNode.Options(1, _tls));
        await using TestNode two = await TestNode.StartAsync(TestNode.Options(2, _tls, one.Address));
        one.Frames.WaitChanges(true);
        using HttpClient client = new(
            new SocketsHttpHandler { SslOptions = { RemoteCertificateValidationCallback = (_, _, _, _) => true } })
        {
            BaseAddress = one.Address,
            DefaultRequestVersion = new Version(version, version == 1 ? 1 : 0),
            DefaultVersionPolicy = HttpVersionPolicy.RequestVersionExact,
        };

        Assert.Equal(version == 1 ? "HTTP/1.1" : "HTTP/2", await client.GetStringAsync(new Uri("/", UriKind.Relative)));
    }

    [Fact]
    public async Task Many_frames_of_all_sizes_arrive_in_order()
    {
        await using TestNode one = await TestNode.StartAsync(TestNode.Options(1, _tls));
        await using TestNode two = await TestNode.StartAsync(TestNode.Options(2, _tls, one.Address));
        two.Frames.WaitChanges(true);
        one.Frames.WaitChanges(true);
        Random random = new(7);
        const int Frames = 20_000;
        for (int i = 0; i < Frames; i++)
        {
            byte[] payload = new byte[i % 1000 == 999 ? random.Next(100_000, 600_000) : random.Next(4, 2000)];
            BinaryPrimitives.WriteInt32LittleEndian(payload, i);
            Assert.True(one.Send(2, payload));
        }

        IReadOnlyList<byte[]> received = two.Frames.WaitFrames(Frames);
        Assert.Equal(Frames, received.Count);
        for (int i = 0; i < Frames; i++)
        {
            Assert.Equal(i, BinaryPrimitives.ReadInt32LittleEndian(received[i]));
        }
    }

    [Fact]
    public async Task Urgent_frames_pass_those_that_wait()
    {
        const int Bulk = 60;
        await using TestNode one = await TestNode.StartAsync(TestNode.Options(1, _tls));
        await using TestNode two = await TestNode.StartAsync(TestNode.Options(2, _tls, one.Address));
        two.Frames.WaitChanges(true);
        one.Frames.WaitChanges(true);
        using ManualResetEventSlim reads = new();
        one.Frames.OnFrame = (_, _) => reads.Wait();
        byte[] entries = new byte[1 << 20];
        for (int i = 0; i < Bulk; i++)
        {
            Assert.True(two.Send(1, entries));
        }

        Assert.True(two.Links.HasWaiting(new NodeId(1)));
        Assert.True(two.Send(1, "beat"u8, isUrgent: true));
        reads.Set();
        IReadOnlyList<byte[]> frames = one.Frames.WaitFrames(Bulk + 1);

        // Before it only what was in the kernel's buffers, a few megabytes, and the frame that was being written.
        Assert.InRange(frames.Index().Single(frame => frame.Item.Length == 4).Index, 0, Bulk / 2);
    }

    [Fact]
    public async Task Frames_of_several_threads_arrive_whole()
    {
        await using TestNode one = await TestNode.StartAsync(TestNode.Options(1, _tls));
        await using TestNode two = await TestNode.StartAsync(TestNode.Options(2, _tls, one.Address));
        two.Frames.WaitChanges(true);
        one.Frames.WaitChanges(true);
        const int Threads = 4;
        const int FramesEach = 5_000;
        await Task.WhenAll(Enumerable.Range(0, Threads).Select(thread => Task.Run(() =>
        {
            for (int i = 0; i < FramesEach; i++)
            {
                byte[] payload = new byte[8 + (i % 300)];
                payload.AsSpan().Fill((byte)thread);
                BinaryPrimitives.WriteInt32LittleEndian(payload, i);
                Assert.True(two.Send(1, payload));
            }
        })));

        int[] next = new int[Threads];
        foreach (byte[] frame in one.Frames.WaitFrames(Threads * FramesEach))
        {
            int thread = frame[^1];
            Assert.Equal(next[thread], BinaryPrimitives.ReadInt32LittleEndian(frame));
            Assert.Equal(8 + (next[thread]++ % 300), frame.Length);
        }
    }

    [Fact]
    public async Task The_largest_frame_passes()
    {
        await using TestNode one = await TestNode.StartAsync(TestNode.Options(1, _tls));
        await using TestNode two = await TestNode.StartAsync(TestNode.Options(2, _tls, one.Address));
        two.Frames.WaitChanges(true);
        byte[] large = new byte[PeerProtocol.FrameBytesMax];
        new Random(3).NextBytes(large);
        Assert.True(two.Send(1, large));
        Assert.True(two.Send(1, "after"u8));

        IReadOnlyList<byte[]> received = one.Frames.WaitFrames(2);
        Assert.True(large.AsSpan().SequenceEqual(received[0]));
        Assert.Equal("after"u8, received[1]);
    }

    [Theory]
    [InlineData("secret", "does not know the cluster's secret", "it has another cluster secret")]
    [InlineData("cluster", "it belongs to another cluster id", "it belongs to another cluster id")]
    [InlineData("partitions", "it has 4 partitions, this node 3", "it has another number of partitions")]
    [InlineData("unknown", "it says it is node 7, which is no other node of this cluster", "this node is none of its peers")]
    public async Task A_stranger_is_refused_and_both_sides_say_so_once(
        string difference, string acceptorLine, string diallerLine)
    {
        await using TestNode one = await TestNode.StartAsync(TestNode.Options(1, _tls));
        PeerLinksOptions stranger = TestNode.Options(2, _tls, one.Address);
        stranger = difference switch
        {
            "secret" => stranger with { Secrets = new ClusterSecrets("another secret of the same kind"u8.ToArray()) },
            "cluster" => stranger with { ClusterId = "other" },
            "partitions" => stranger with { Partitions = 4 },
            _ => stranger with { Self = new NodeId(7) },
        };
        await using TestNode two = await TestNode.StartAsync(stranger);
        await one.Log.WaitFor(acceptorLine);
        await two.Log.WaitFor(diallerLine);

        // Meanwhile it keeps trying; nothing more is logged.
        int changesBefore = one.Frames.Changes.Count;
        await one.Log.WaitFor(acceptorLine);
        Assert.Equal(0, changesBefore);
        Assert.Empty(two.Frames.Changes);
        Assert.Equal(1, one.Log.Count("Refused a node link"));
        Assert.Equal(1, two.Log.Count(diallerLine));
    }

    [Fact]
    public async Task A_node_at_the_wrong_address_is_refused()
    {
        await using TestNode one = await TestNode.StartAsync(TestNode.Options(1, _tls));
        PeerLinksOptions three = TestNode.Options(3, _tls);
        await using TestNode lost = await TestNode.StartAsync(
            three with { Peers = [new(new NodeId(2), one.Address), new(new NodeId(3), one.Address)] });

        await one.Log.WaitFor("it looks for node 2, this is node 1");
        await lost.Log.WaitFor("it is another node than its address promised");
    }

    [Fact]
    public async Task An_address_of_something_else_is_told_apart()
    {
        using TemporaryDirectory other = new();
        NodeTls foreign = new DevelopmentCertificates(other.Path, TimeProvider.System).Ensure([]);
        await using TestNode one = await TestNode.StartAsync(TestNode.Options(1, foreign));
        await using TestNode two = await TestNode.StartAsync(TestNode.Options(2, _tls, one.Address));

        await two.Log.WaitFor("Cannot connect to node 1");
        Assert.Empty(one.Frames.Changes);
    }

    [Fact]
    public async Task Garbage_ends_the_connection_and_nothing_else()
    {
        await using TestNode one = await TestNode.StartAsync(TestNode.Options(1, _tls));
        byte[] garbage = new byte[200];
        new Random(5).NextBytes(garbage);
        using (SslStream tls = await RawPeer.DialTls(one.Address))
        {
            await tls.WriteAsync(garbage);
            await RawPeer.AssertEnds(tls);
        }

        await one.Log.WaitFor("it sent no handshake");
        using (SslStream tls = await RawPeer.DialTls(one.Address))
        {
            // A hello of a later version.
            await tls.WriteAsync(new byte[] { 1, 0, 6, 0, (byte)'K', (byte)'P', (byte)'L', (byte)'H', 9, 0 });
            await RawPeer.AssertEnds(tls);
        }

        await one.Log.WaitFor("it speaks version 9 between nodes, this node versions 5 to 6");
        await using TestNode two = await TestNode.StartAsync(TestNode.Options(2, _tls, one.Address));
        one.Frames.WaitChanges(true);
    }

    [Fact]
    public async Task A_proven_peer_that_breaks_the_frame_limit_is_dropped()
    {
        await using TestNode one = await TestNode.StartAsync(TestNode.Options(1, _tls));
        using SslStream tls = await RawPeer.DialTls(one.Address);
        RawPeer.Prove(tls, TestNode.Options(2, _tls, one.Address));
        one.Frames.WaitChanges(true);
        await tls.WriteAsync(new byte[] { 255, 255, 255, 255 });

        one.Frames.WaitChanges(true, false);
        await one.Log.WaitFor("it sent a frame of 4294967295 bytes");
    }

    [Fact]
    public async Task Who_does_not_prove_itself_in_time_is_dropped()
    {
        await using TestNode one = await TestNode.StartAsync(
            TestNode.Options(1, _tls) with { HandshakeTimeout = TimeSpan.FromMilliseconds(200) });
        using SslStream tls = await RawPeer.DialTls(one.Address);
        await RawPeer.AssertEnds(tls);
    }

    [Fact]
    public async Task The_oldest_unproven_connection_gives_way()
    {
        await using TestNode one = await TestNode.StartAsync(
            TestNode.Options(1, _tls) with { HandshakeTimeout = TimeSpan.FromMinutes(5), UnprovenMax = 2 });
        using SslStream first = await RawPeer.DialTls(one.Address);
        using SslStream second = await RawPeer.DialTls(one.Address);
        await using TestNode two = await TestNode.StartAsync(TestNode.Options(2, _tls, one.Address));

        one.Frames.WaitChanges(true);
        await RawPeer.AssertEnds(first);
    }

    [Fact]
    public async Task The_newest_connection_of_a_peer_wins()
    {
        await using TestNode one = await TestNode.StartAsync(TestNode.Options(1, _tls));
        PeerLinksOptions two = TestNode.Options(2, _tls, one.Address);
        using SslStream older = await RawPeer.DialTls(one.Address);
        RawPeer.Prove(older, two);
        one.Frames.WaitChanges(true);
        using SslStream newer = await RawPeer.DialTls(one.Address);
        RawPeer.Prove(newer, two);

        one.Frames.WaitChanges(true, false, true);
        await RawPeer.AssertEnds(older);
        await newer.WriteAsync(new byte[] { 2, 0, 0, 0, 4, 2 });
        Assert.Equal([4, 2], one.Frames.WaitFrames(1)[0]);
    }

    [Fact]
    public async Task A_peer_that_does_not_read_costs_frames_but_no_time()
    {
        await using TestNode one = await TestNode.StartAsync(TestNode.Options(1, _tls) with
        {
            QueueBytesMax = 1 << 20,
            QueueFramesMax = 100,
            SilenceMax = TimeSpan.FromMinutes(5),
        });
        using SslStream two = await RawPeer.DialTls(one.Address);
        RawPeer.Prove(two, TestNode.Options(2, _tls, one.Address));
        one.Frames.WaitChanges(true);

        // More than all buffers between here and there hold.
        byte[] payload = new byte[60_000];
        int sent = 0;
        int dropped = 0;
        while (dropped < 50 && sent < 10_000)
        {
            if (one.Send(2, payload))
            {
                sent++;
            }
            else
            {
                dropped++;
            }
        }

        Assert.Equal(50, dropped);
        Assert.Equal(1, one.Log.Count("The queue to node 2 is full"));

        // When it reads again, all accepted frames arrive, and the link continues.
        byte[] frame = new byte[4 + payload.Length];
        for (int i = 0; i < sent; i++)
        {
            await two.ReadExactlyAsync(frame.AsMemory(0, 4));
            int length = BinaryPrimitives.ReadInt32LittleEndian(frame);
            Assert.True(length == payload.Length || length == 0);
            await two.ReadExactlyAsync(frame.AsMemory(0, length));
            i -= length == 0 ? 1 : 0;
        }

        Assert.True(one.Send(2, "next"u8));
        do
        {
            await two.ReadExactlyAsync(frame.AsMemory(0, 4));
        }
        while (BinaryPrimitives.ReadInt32LittleEndian(frame) == 0);
        await two.ReadExactlyAsync(frame.AsMemory(0, 4));
        Assert.Equal("next"u8, frame.AsSpan(0, 4));
        Assert.Equal([(new NodeId(2), true)], one.Frames.Changes);
    }

    [Fact]
    public async Task A_silent_peer_is_dead_and_idle_links_live()
    {
        // A tick that is more than one interval late begins the count anew, as after a pause of the process.
        TimeSpan interval = TimeSpan.FromMilliseconds(500);
        await using TestNode one = await TestNode.StartAsync(
            TestNode.Options(1, _tls) with { KeepAliveInterval = interval, SilenceMax = interval * 20 });
        using SslStream silent = await RawPeer.DialTls(one.Address);
        RawPeer.Prove(silent, TestNode.Options(2, _tls, one.Address));
        one.Frames.WaitChanges(true);

        // An idle link shows that it lives: frames of length zero.
        byte[] zero = new byte[4];
        await silent.ReadExactlyAsync(zero);
        Assert.Equal(new byte[4], zero);
        one.Frames.WaitChanges(true, false);
        await one.Log.WaitFor("nothing was heard for 10 s");
    }

    [Fact]
    public async Task Disposal_tells_the_receiver_and_ends_the_threads()
    {
        await using TestNode one = await TestNode.StartAsync(TestNode.Options(1, _tls));
        TestNode two = await TestNode.StartAsync(TestNode.Options(2, _tls, one.Address));
        two.Frames.WaitChanges(true);
        await two.DisposeAsync();
        await two.Links.DisposeAsync();

        Assert.Equal([true, false], two.Frames.Changes.Select(change => change.Up));
        Assert.False(two.Send(1, "late"u8));
        one.Frames.WaitChanges(true, false);
    }

    [Fact]
    public async Task A_receiver_that_throws_is_the_end_of_the_process()
    {
        RecordedErrors ends = new();
        await using TestNode one = await TestNode.StartAsync(TestNode.Options(1, _tls) with { FatalErrors = ends });
        int failures = 1;
        one.Frames.OnFrame = (_, _) => Assert.True(Interlocked.Decrement(ref failures) < 0, "planned");
        await using TestNode two = await TestNode.StartAsync(TestNode.Options(2, _tls, one.Address));
        two.Frames.WaitChanges(true);
        two.Send(1, "x"u8);

        await ends.First.WaitAsync(TimeSpan.FromSeconds(60));
        Assert.Contains("a frame of node 2", Assert.Single(ends.Raised).Where, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Frames_allocate_nothing()
    {
        const int Warm = 2_000;
        const int Window = 200;
        await using TestNode one = await TestNode.StartAsync(TestNode.Options(1, _tls));
        EchoReceiver echo = new(Warm, Window, windows: 50);
        PeerLinks two = new(TestNode.Options(2, _tls, one.Address), echo, one.Log);
        echo.Send = frame => two.TrySend(new NodeId(1), frame);
        one.Frames.OnFrame = (_, payload) => one.Send(2, payload.Span);
        two.Start();
        await echo.Done.WaitAsync(LastNet.Span);
        await two.DisposeAsync();

        // Reading, delivering, queueing and writing happen in the same thread; a byte per frame would be a counter gone
        // wrong, an object is 24.
        Assert.InRange(echo.AllocatedBytes, 0, Window);
    }
}
