using Kahuna.Server.Hosting.Certificates;
using Kahuna.Server.Primitives;
using Kahuna.Server.Transport;
using Kahuna.Tests.Hosting;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Transport;

/// <summary>
/// Nodes of different versions agree on one, and a node that does not support the cluster's feature level hears so from
/// proven nodes only.
/// </summary>
public sealed class PeerVersionTests : IDisposable
{
    private static readonly FeatureRange s_oneToTwo = new(new FeatureLevel(1), new FeatureLevel(2));

    private readonly TemporaryDirectory _directory = new();
    private readonly NodeTls _tls;

    public PeerVersionTests() => _tls = new DevelopmentCertificates(_directory.Path, TimeProvider.System).Ensure([]);

    public void Dispose() => _directory.Dispose();

    [Theory]
    [InlineData(5, 6, 5, 6, 6, true)]
    [InlineData(5, 6, 5, 5, 5, true)]
    [InlineData(5, 5, 5, 6, 5, true)]
    [InlineData(5, 5, 5, 5, 5, true)]
    [InlineData(5, 7, 5, 6, 7, true)]
    [InlineData(5, 6, 5, 7, 6, true)]
    [InlineData(6, 7, 5, 6, 7, true)]
    [InlineData(5, 6, 6, 7, 6, true)]
    [InlineData(7, 8, 5, 6, 8, false)]
    [InlineData(5, 6, 7, 8, 6, false)]
    [InlineData(5, 5, 6, 6, 5, false)]
    [InlineData(4, 4, 5, 6, 4, false)]
    public async Task Two_nodes_agree_or_both_hear_why_not(
        ushort diallerMin, ushort diallerMax, ushort acceptorMin, ushort acceptorMax, ushort offer, bool agree)
    {
        Answers answers = await Run(
            Node(2) with { Versions = new(diallerMin, diallerMax) },
            Node(1) with { Versions = new(acceptorMin, acceptorMax) },
            offer);
        if (agree)
        {
            Assert.Equal((null, null), (answers.Dialler?.Message, answers.Acceptor?.Message));
            return;
        }

        Assert.Equal((PeerRefusal.Version, true), (answers.Dialler!.Reason, answers.Dialler.ByOther));
        Assert.Equal((PeerRefusal.Version, false), (answers.Acceptor!.Reason, answers.Acceptor.ByOther));
        Assert.Contains(
            new PeerVersions(acceptorMin, acceptorMax).ToString(), answers.Acceptor.Message, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Nobody_in_the_middle_brings_two_nodes_down_to_an_earlier_version()
    {
        // A forged refusal has told the dialler that the other node speaks version 5 only.
        Answers answers = await Run(Node(2), Node(1), offer: 5);
        Assert.Equal((PeerRefusal.Version, false), (answers.Acceptor!.Reason, answers.Acceptor.ByOther));
        Assert.Contains("both speak a later one", answers.Acceptor.Message, StringComparison.Ordinal);
        Assert.Equal((PeerRefusal.Version, true), (answers.Dialler!.Reason, answers.Dialler.ByOther));

        // Where it is true, it is taken.
        answers = await Run(Node(2), Node(1) with { Versions = new(5, 5) }, offer: 5);
        Assert.Equal((null, null), (answers.Dialler, answers.Acceptor));
    }

    [Fact]
    public async Task A_dialler_finds_the_version_of_a_node_before_the_upgrade()
    {
        await using TestNode one = await TestNode.StartAsync(
            TestNode.Options(1, _tls) with { Versions = new PeerVersions(5, 5) });
        await using TestNode two = await TestNode.StartAsync(TestNode.Options(2, _tls, one.Address));
        await Eventually(() => two.Links.IsUp(new NodeId(1)) && one.Links.IsUp(new NodeId(2)));
    }

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task A_node_below_the_cluster_s_level_stops_and_the_other_refuses_it(bool isDialler)
    {
        List<(FeatureLevel Level, NodeId Peer)> stopped = [];
        PeerLinksOptions old =
            Node((ushort)(isDialler ? 2 : 1)) with { LevelUnsupported = (level, peer) => stopped.Add((level, peer)) };
        PeerLinksOptions raised = Node((ushort)(isDialler ? 1 : 2)) with
        {
            Features = s_oneToTwo,
            ClusterLevel = static () => new FeatureLevel(2),
            LevelUnsupported = static (_, _) => Assert.Fail("It supports the level."),
        };
        Answers answers = isDialler ? await Run(old, raised) : await Run(raised, old);
        PeerHandshakeException own = (isDialler ? answers.Dialler : answers.Acceptor)!;
        Assert.Equal((PeerRefusal.FeatureLevel, false), (own.Reason, own.ByOther));
        Assert.Equal((new FeatureLevel(2), raised.Self), Assert.Single(stopped));
        PeerHandshakeException other = (isDialler ? answers.Acceptor : answers.Dialler)!;
        Assert.Equal((PeerRefusal.FeatureLevel, false), (other.Reason, other.ByOther));
        Assert.Contains(
            "supports feature level 1 only, and the cluster has level 2", other.Message, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Version_5_counts_as_level_1_alone()
    {
        Answers answers = await Run(
            Node(2) with { Versions = new(5, 5) },
            Node(1) with { Features = s_oneToTwo, ClusterLevel = static () => new FeatureLevel(2) },
            offer: 5);
        Assert.Equal(PeerRefusal.FeatureLevel, answers.Acceptor!.Reason);
    }

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task A_stranger_s_level_stops_no_node(bool isDialler)
    {
        PeerLinksOptions node = Node((ushort)(isDialler ? 2 : 1)) with
        {
            LevelUnsupported = static (_, _) => Assert.Fail("A stranger's word stops no node."),
        };
        PeerLinksOptions stranger = Node((ushort)(isDialler ? 1 : 2)) with
        {
            Features = s_oneToTwo,
            ClusterLevel = static () => new FeatureLevel(2),
            Secrets = new ClusterSecrets(new byte[32]),
        };
        Answers answers = isDialler ? await Run(node, stranger) : await Run(stranger, node);
        Assert.Equal(PeerRefusal.Secret, (isDialler ? answers.Dialler : answers.Acceptor)!.Reason);
    }

    [Theory]
    [InlineData(0, 1, 1, 1)]
    [InlineData(7, 1, 1, 1)]
    [InlineData(6, 0, 1, 1)]
    [InlineData(6, 0, 0, 1)]
    [InlineData(6, 2, 1, 1)]
    [InlineData(6, 65535, 1, 1)]
    [InlineData(6, 1, 1, 0)]
    public void Hostile_ranges_are_no_hello(ushort versionMin, ushort levelMin, ushort levelMax, ushort clusterLevel)
    {
        byte[] hello = Hello(6);
        ushort[] fields = [versionMin, levelMin, levelMax, clusterLevel];
        for (int i = 0; i < fields.Length; i++)
        {
            BitConverter.TryWriteBytes(hello.AsSpan(hello.Length - 8 + (2 * i)), fields[i]);
        }

        Assert.Null(PeerHello.Decode(hello));
    }

    [Fact]
    public void A_later_hello_may_be_longer_and_one_without_a_known_layout_is_its_version_only()
    {
        byte[] longer = [.. Hello(7), 1, 2, 3];
        Assert.Equal((7, 5, 2), (
            PeerHello.Decode(longer)!.Version,
            PeerHello.Decode(longer)!.VersionMin,
            PeerHello.Decode(longer)!.From.Value));
        Assert.Null(PeerHello.Decode([.. Hello(6), 1]));
        Assert.Null(PeerHello.Decode([.. Hello(5), 1]));
        PeerHello other = PeerHello.Decode(longer.AsSpan()[..20])!;
        Assert.Equal(new PeerVersions(7, 7), other.Versions);
        Assert.Equal(new PeerVersions(4, 4), PeerHello.Decode(Hello(4))!.Versions);
    }

    private static byte[] Hello(ushort version) =>
        new PeerHello(version, new NodeId(2), new NodeId(1), 3, new byte[PeerHello.NonceBytes], "test")
        {
            DirectoryId = 22,
            Voters = new VoterSet([new NodeId(1), new NodeId(2), new NodeId(3)]),
            VersionMin = Math.Min(version, (ushort)5),
        }.Encode();

    private static async Task Eventually(Func<bool> holds)
    {
        for (int i = 0; i < 1000 && !holds(); i++)
        {
            await Task.Delay(10);
        }

        Assert.True(holds());
    }

    private static async Task<Answers> Run(PeerLinksOptions dialler, PeerLinksOptions acceptor, ushort? offer = null)
    {
        (Stream a, Stream b) = await LoopbackPair.ConnectAsync();
        Task<PeerHandshakeException?> accepting = Attempt(
            a, () => new PeerHandshake(acceptor, a, new byte[32]).Accept());
        Task<PeerHandshakeException?> dialling = Attempt(
            b,
            () => new PeerHandshake(dialler, b, new byte[32]).Dial(acceptor.Self, offer ?? dialler.Versions.Max));
        PeerHandshakeException?[] results = await Task.WhenAll(accepting, dialling).WaitAsync(LastNet.Span);
        return new Answers(results[1], results[0]);
    }

    private static Task<PeerHandshakeException?> Attempt(Stream stream, Action action) => Task.Run(() =>
    {
        try
        {
            action();
            return null;
        }
        catch (PeerHandshakeException refusal)
        {
            stream.Dispose();
            return refusal;
        }
    });

    private PeerLinksOptions Node(ushort id) => TestNode.Options(id, _tls);

    private sealed record Answers(PeerHandshakeException? Dialler, PeerHandshakeException? Acceptor);
}
