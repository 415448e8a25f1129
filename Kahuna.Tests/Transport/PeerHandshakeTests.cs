using System.Security.Cryptography;
using System.Text;
using Kahuna.Server.Cluster;
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
        (NodeId? peer, PeerHandshakeException? acceptor, PeerHandshakeException? dialler) = await Run(
            Node(2), Node(1), new byte[32], new byte[32]);

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
        (NodeId? peer, PeerHandshakeException? acceptor, PeerHandshakeException? dialler) = await Run(
            Node(2), Node(1), new byte[32], other);

        Assert.Null(peer);
        Assert.Equal((PeerRefusal.Secret, false), (acceptor!.Reason, acceptor.ByOther));
        Assert.Equal((PeerRefusal.Secret, true), (dialler!.Reason, dialler.ByOther));
    }

    [Theory]
    [InlineData("old", "old new", true)]
    [InlineData("old new", "old", true)]
    [InlineData("new old", "old new", true)]
    [InlineData("old new", "new old", true)]
    [InlineData("new", "new old", true)]
    [InlineData("new old", "new", true)]
    [InlineData("new old", "old", false)]
    [InlineData("old", "new", false)]
    public async Task A_secret_is_replaced_step_by_step(string diallers, string acceptors, bool isProven)
    {
        (NodeId? peer, PeerHandshakeException? acceptor, PeerHandshakeException? dialler) = await Run(
            Node(2) with { Secrets = SecretsOf(diallers) },
            Node(1) with { Secrets = SecretsOf(acceptors) },
            new byte[32],
            new byte[32]);
        Assert.Equal(isProven ? new NodeId(2) : null, peer);
        Assert.Equal(isProven ? null : PeerRefusal.Secret, acceptor?.Reason);
        Assert.Equal(isProven ? null : PeerRefusal.Secret, dialler?.Reason);
    }

    [Fact]
    public void A_node_s_calls_are_recognized_by_either_secret()
    {
        ClusterSecrets other = SecretsOf("old new");
        NodeCredential credential = new(other);
        string? before = credential.Value;
        Assert.True(new NodeCredential(SecretsOf("new old")).Matches(before));
        other.Replace([.. SecretsOf("new").Accepted]);
        Assert.NotEqual(before, credential.Value);
        Assert.True(new NodeCredential(SecretsOf("old new")).Matches(credential.Value));
        Assert.False(credential.Matches(before));
        Assert.False(credential.Matches(null));
        Assert.Null(new NodeCredential(new ClusterSecrets()).Value);
        Assert.False(new NodeCredential(new ClusterSecrets()).Matches(before));
    }

    [Theory]
    [InlineData(1)]
    [InlineData(9)]
    public async Task Only_other_nodes_of_the_cluster_are_taken(ushort id)
    {
        (_, PeerHandshakeException? acceptor, PeerHandshakeException? dialler) = await Run(
            Node(id), Node(1), new byte[32], new byte[32]);

        Assert.Equal(PeerRefusal.UnknownNode, acceptor!.Reason);
        Assert.Equal((PeerRefusal.UnknownNode, true), (dialler!.Reason, dialler.ByOther));
    }

    [Fact]
    public async Task The_smaller_id_does_not_connect()
    {
        (_, PeerHandshakeException? acceptor, _) = await Run(Node(1), Node(2), new byte[32], new byte[32], target: 2);

        Assert.Equal(PeerRefusal.WrongDirection, acceptor!.Reason);
    }

    [Theory]
    [InlineData(new ushort[] { 1, 2 })]
    [InlineData(new ushort[] { 1, 2, 4 })]
    [InlineData(new ushort[] { 1, 2, 3, 4, 5 })]
    public async Task Nodes_that_were_started_for_others_are_refused_on_both_sides(ushort[] ids)
    {
        PeerLinksOptions other = Node(2) with { Peers = [.. ids.Select(id => new PeerAddress(new NodeId(id), new Uri("https://127.0.0.1:1")))] };
        (NodeId? peer, PeerHandshakeException? acceptor, PeerHandshakeException? dialler) = await Run(
            other, Node(1), new byte[32], new byte[32]);

        string list = string.Join(", ", ids);
        Assert.Null(peer);
        Assert.Equal((PeerRefusal.Voters, false), (acceptor!.Reason, acceptor.ByOther));
        Assert.Contains(
            $"its cluster has the nodes {list}, this node's the nodes 1, 2, 3; compare --peers on both",
            acceptor.Message,
            StringComparison.Ordinal);
        Assert.Equal((PeerRefusal.Voters, true), (dialler!.Reason, dialler.ByOther));
        Assert.Contains(
            $"its cluster has the nodes 1, 2, 3, this node's the nodes {list}; compare --peers on both",
            dialler.Message,
            StringComparison.Ordinal);
    }

    [Fact]
    public async Task Other_addresses_and_another_order_are_the_same_nodes()
    {
        PeerLinksOptions moved = Node(2) with { Peers = [.. new ushort[] { 3, 2, 1 }.Select(id => new PeerAddress(new NodeId(id), new Uri($"https://elsewhere:{id}")))] };
        (NodeId? peer, _, _) = await Run(moved, Node(1), new byte[32], new byte[32]);

        Assert.Equal(new NodeId(2), peer);
    }

    [Fact]
    public void A_hello_keeps_its_fields()
    {
        PeerHello hello =
            new(PeerProtocol.Versions.Max, new NodeId(3), new NodeId(1), 77, new byte[PeerHello.NonceBytes], "blå")
            {
                DirectoryId = 0x0102030405060708,
                Rebuilt = true,
                Voters = new VoterSet([new NodeId(1), new NodeId(3)]),
            };
        PeerHello read = PeerHello.Decode(hello.Encode())!;

        Assert.Equal(
            (hello.Version, hello.From, hello.To, hello.Partitions, hello.ClusterId),
            (read.Version, read.From, read.To, read.Partitions, read.ClusterId));
        Assert.Equal((hello.DirectoryId, hello.Rebuilt, hello.Voters), (read.DirectoryId, read.Rebuilt, read.Voters));
        byte[] descending = hello.Encode();
        descending[^10] = 0;
        Assert.Null(PeerHello.Decode(descending));
        Assert.Null(PeerHello.Decode(
            (hello with
            {
                Voters = new VoterSet(Enumerable.Range(1, 33).Select(static id => new NodeId((ushort)id))),
            }).Encode()));
        Assert.Null(PeerHello.Decode((hello with { DirectoryId = 0 }).Encode()));
        Assert.Null(PeerHello.Decode(hello.Encode().AsSpan()[..^1]));
        Assert.Null(PeerHello.Decode("GET / HTTP/1.1\r\n\r\n"u8));
        Assert.Null(PeerHello.Decode([]));
    }

    [Fact]
    public void Whatever_a_stranger_sends_ends_in_a_refusal_or_in_the_end_of_the_stream()
    {
        byte[] hello = Message(1, HelloTo(Node(1), from: 2));
        int secret = RefusedForTheSecret(
            seed: 20,
            [[.. hello, .. Message(2, new byte[32]), .. Message(4, new byte[33])], hello],
            stream => new PeerHandshake(Node(1), stream, new byte[32]).Accept());

        Assert.True(secret > 100, $"{secret} inputs came as far as the proof");
    }

    [Fact]
    public void Whatever_is_answered_to_a_dialler_ends_in_a_refusal_or_in_the_end_of_the_stream()
    {
        byte[] hello = Message(1, HelloTo(Node(2), from: 1));
        byte[] refusal = Message(3, [10, 1, 0, 2, 0, 3, 0]);
        int secret = RefusedForTheSecret(
            seed: 21,
            [[.. hello, .. Message(4, new byte[33])], [.. hello, .. refusal], refusal],
            stream => new PeerHandshake(Node(2), stream, new byte[32]).Dial(new NodeId(1)));

        Assert.True(secret > 100, $"{secret} inputs came as far as the proof");
    }

    [Fact]
    public void The_throttle_bounds_what_strangers_can_name()
    {
        SteppedTime time = new();
        LogThrottle throttle = new(time, TimeSpan.FromMinutes(1), keysMax: 4);

        Assert.Equal(4, Enumerable.Range(0, 1000).Count(i => throttle.Allows($"stranger {i}")));
        time.Now += TimeSpan.FromMinutes(1);
        Assert.True(throttle.Allows("stranger 1", out long leftOut));
        Assert.Equal(996, leftOut);
        Assert.False(throttle.Allows("stranger 1"));
        Assert.True(throttle.Allows("stranger 2000", out leftOut));
        Assert.Equal(0, leftOut);
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

    private static byte[] HelloTo(PeerLinksOptions node, ushort from) =>
        new PeerHello(PeerProtocol.Versions.Max, new NodeId(from), node.Self, 3, new byte[PeerHello.NonceBytes], "test")
        {
            DirectoryId = 22,
            Voters = node.Voters,
        }.Encode();

    private static byte[] Message(byte kind, byte[] body) =>
        [kind, 0, (byte)body.Length, (byte)(body.Length >> 8), .. body];

    /// <summary>
    /// How many of many damaged copies of these bytes came as far as the proof. None of them may end a handshake well,
    /// or otherwise than with a refusal or at the end of the stream.
    /// </summary>
    private static int RefusedForTheSecret(int seed, IReadOnlyList<byte[]> good, Action<Stream> shake)
    {
        FuzzInputs inputs = new(seed, good);
        int secret = 0;
        for (int i = 0; i < FuzzInputs.Count(20_000); i++)
        {
            using MemoryStreamPair stream = new(inputs.Next());
            try
            {
                shake(stream);
                Assert.Fail("A stranger was taken for a node.");
            }
            catch (PeerHandshakeException refusal)
            {
                secret += refusal.Reason == PeerRefusal.Secret ? 1 : 0;
            }
            catch (EndOfStreamException)
            {
                // Cut off.
            }
        }

        return secret;
    }

    private static async Task<(NodeId? Peer, PeerHandshakeException? Acceptor, PeerHandshakeException? Dialler)> Run(
        PeerLinksOptions dialler,
        PeerLinksOptions acceptor,
        byte[] hashOfDialler,
        byte[] hashOfAcceptor,
        ushort target = 1)
    {
        (Stream a, Stream b) = await LoopbackPair.ConnectAsync();
        await using Stream server = a;
        await using Stream client = b;
        NodeId? peer = null;
        Task<PeerHandshakeException?> accepting = Attempt(
            () => peer = new PeerHandshake(acceptor, server, hashOfAcceptor).Accept().Id);
        Task<PeerHandshakeException?> dialling = Attempt(
            () => new PeerHandshake(dialler, client, hashOfDialler).Dial(new NodeId(target)));
        PeerHandshakeException?[] results = await Task.WhenAll(accepting, dialling).WaitAsync(LastNet.Span);
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

    private static ClusterSecrets SecretsOf(string names) =>
        new([.. names.Split(' ').Select(static name => SHA256.HashData(Encoding.ASCII.GetBytes(name)))]);

    private PeerLinksOptions Node(ushort id) => TestNode.Options(id, _tls);
}
