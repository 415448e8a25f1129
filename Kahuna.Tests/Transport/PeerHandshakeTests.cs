using Kahuna.Server.Hosting.Certificates;
using Kahuna.Server.Primitives;
using Kahuna.Server.Transport;
using Kahuna.Tests.Hosting;

namespace Kahuna.Tests.Transport;

/// <summary>The proofs, without TLS around them.</summary>
public sealed class PeerHandshakeTests : IDisposable
{
    private readonly TemporaryDirectory _directory = new();
    private readonly NodeTls _tls;

    public PeerHandshakeTests() => _tls = new DevelopmentCertificates(_directory.Path, TimeProvider.System).Ensure([]);

    public void Dispose() => _directory.Dispose();

    [Fact]
    public async Task Both_prove_themselves()
    {
        (NodeId? peer, PeerHandshakeException? acceptor, PeerHandshakeException? dialler) = await Run(Node(2), Node(1), new byte[32], new byte[32]);

        Assert.Equal(new NodeId(2), peer);
        Assert.Null(acceptor);
        Assert.Null(dialler);
    }

    [Fact]
    public async Task Proofs_do_not_pass_through_somebody_in_the_middle()
    {
        // Each side sees another certificate, as with a TLS proxy that passes all messages on.
        byte[] other = new byte[32];
        other[0] = 1;
        (NodeId? peer, PeerHandshakeException? acceptor, PeerHandshakeException? dialler) = await Run(Node(2), Node(1), new byte[32], other);

        Assert.Null(peer);
        Assert.Equal((PeerRefusal.Secret, false), (acceptor!.Reason, acceptor.ByOther));
        Assert.Equal((PeerRefusal.Secret, true), (dialler!.Reason, dialler.ByOther));
    }

    [Theory]
    [InlineData(1)]
    [InlineData(9)]
    public async Task Only_other_nodes_of_the_cluster_are_taken(ushort id)
    {
        (_, PeerHandshakeException? acceptor, PeerHandshakeException? dialler) = await Run(Node(id), Node(1), new byte[32], new byte[32]);

        Assert.Equal(PeerRefusal.UnknownNode, acceptor!.Reason);
        Assert.Equal((PeerRefusal.UnknownNode, true), (dialler!.Reason, dialler.ByOther));
    }

    [Fact]
    public async Task The_smaller_id_does_not_connect()
    {
        (_, PeerHandshakeException? acceptor, _) = await Run(Node(1), Node(2), new byte[32], new byte[32], target: 2);

        Assert.Equal(PeerRefusal.WrongDirection, acceptor!.Reason);
    }

    [Fact]
    public void A_hello_keeps_its_fields()
    {
        PeerHello hello = new(PeerProtocol.Version, new NodeId(3), new NodeId(1), 77, new byte[PeerHello.NonceBytes], "blå") { DirectoryId = 0x0102030405060708, Rebuilt = true };
        PeerHello read = PeerHello.Decode(hello.Encode())!;

        Assert.Equal((hello.Version, hello.From, hello.To, hello.Partitions, hello.ClusterId), (read.Version, read.From, read.To, read.Partitions, read.ClusterId));
        Assert.Equal((hello.DirectoryId, hello.Rebuilt), (read.DirectoryId, read.Rebuilt));
        Assert.Null(PeerHello.Decode((hello with { DirectoryId = 0 }).Encode()));
        Assert.Null(PeerHello.Decode(hello.Encode().AsSpan()[..^1]));
        Assert.Null(PeerHello.Decode("GET / HTTP/1.1\r\n\r\n"u8));
        Assert.Null(PeerHello.Decode([]));
    }

    [Fact]
    public void The_throttle_lets_one_through_in_an_interval()
    {
        SteppedTime time = new();
        LogThrottle throttle = new(time, TimeSpan.FromMinutes(1));

        Assert.True(throttle.Allows("a"));
        Assert.False(throttle.Allows("a"));
        Assert.True(throttle.Allows("b"));
        time.Now += TimeSpan.FromSeconds(59);
        Assert.False(throttle.Allows("a"));
        time.Now += TimeSpan.FromSeconds(2);
        Assert.True(throttle.Allows("a"));
    }

    private static async Task<(NodeId? Peer, PeerHandshakeException? Acceptor, PeerHandshakeException? Dialler)> Run(
        PeerLinksOptions dialler, PeerLinksOptions acceptor, byte[] hashOfDialler, byte[] hashOfAcceptor, ushort target = 1)
    {
        (Stream a, Stream b) = await LoopbackPair.ConnectAsync();
        await using Stream server = a;
        await using Stream client = b;
        NodeId? peer = null;
        Task<PeerHandshakeException?> accepting = Attempt(() => peer = new PeerHandshake(acceptor, server, hashOfAcceptor).Accept().Id);
        Task<PeerHandshakeException?> dialling = Attempt(() => new PeerHandshake(dialler, client, hashOfDialler).Dial(new NodeId(target)));
        PeerHandshakeException?[] results = await Task.WhenAll(accepting, dialling).WaitAsync(TimeSpan.FromSeconds(30));
        return (peer, results[0], results[1]);
    }

    private static Task<PeerHandshakeException?> Attempt(Action action) => Task.Run(() =>
    {
        try
        {
            action();
            return null;
        }
        catch (PeerHandshakeException refusal)
        {
            return refusal;
        }
    });

    private PeerLinksOptions Node(ushort id) => TestNode.Options(id, _tls);

    /// <summary>A clock that a test moves.</summary>
    private sealed class SteppedTime : TimeProvider
    {
        public TimeSpan Now { get; set; }

        public override long TimestampFrequency => TimeSpan.TicksPerSecond;

        public override long GetTimestamp() => Now.Ticks;
    }
}
