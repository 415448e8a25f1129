using Kahuna.Server.Hosting.Certificates;
using Kahuna.Server.Primitives;
using Kahuna.Server.Transport;
using Kahuna.Tests.Hosting;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Transport;

/// <summary>
/// The bytes of the handshake. Only a node that knows the secret can change a node's record of another one's directory.
/// </summary>
public sealed class PeerAnswerTests : IDisposable
{
    private static readonly TimeSpan s_limit = LastNet.Span;

    private readonly TemporaryDirectory _directory = new();
    private readonly PeerLinksOptions _options;
    private readonly FixedDirectory _known = new(11);

    public PeerAnswerTests() =>
        _options =
            TestNode.Options(1, new DevelopmentCertificates(_directory.Path, TimeProvider.System).Ensure([])) with
            {
                Directory = _known,
            };

    public void Dispose() => _directory.Dispose();

    [Fact]
    public void The_bytes_of_a_hello()
    {
        byte[] nonce = [.. Enumerable.Range(0, PeerHello.NonceBytes).Select(i => (byte)(0xA0 + i))];
        PeerHello built = new(6, new NodeId(0x0201), new NodeId(3), 4, nonce, "test")
        {
            DirectoryId = 0x1122334455667788,
            Rebuilt = true,
            Voters = new VoterSet([new NodeId(3), new NodeId(0x0201)]),
            VersionMin = 5,
            Features = new FeatureRange(new FeatureLevel(2), new FeatureLevel(0x0304)),
            ClusterLevel = new FeatureLevel(3),
        };
        byte[] hello = built.Encode();

        Assert.Equal(
            "4B504C48" + "0600" + "0102" + "0300" + "01" + "02" + "04000000" + "8877665544332211"
            + "A0A1A2A3A4A5A6A7A8A9AAABACADAEAFB0B1B2B3B4B5B6B7B8B9BABBBCBDBEBF" + "04" + "74657374" + "0300" + "0102"
            + "0500" + "0200" + "0403" + "0300",
            Convert.ToHexString(hello));
        hello[10] = 2;
        Assert.Null(PeerHello.Decode(hello));

        // The version before, which has neither range nor levels.
        hello = (built with { Version = 5 }).Encode();
        Assert.Equal(
            "4B504C48" + "0500" + "0102" + "0300" + "01" + "02" + "04000000" + "8877665544332211"
            + "A0A1A2A3A4A5A6A7A8A9AAABACADAEAFB0B1B2B3B4B5B6B7B8B9BABBBCBDBEBF" + "04" + "74657374" + "0300" + "0102",
            Convert.ToHexString(hello));
        hello[10] = 2;
        Assert.Null(PeerHello.Decode(hello));
    }

    [Fact]
    public async Task The_order_and_the_proofs_are_as_documented()
    {
        await WithAcceptor(async (dialler, accepting) =>
        {
            PeerHello theirs = PeerHello.Decode(await dialler.ExchangeHellos())!;
            Assert.Equal((new NodeId(1), 11ul, false), (theirs.From, theirs.DirectoryId, theirs.Rebuilt));
            Assert.Empty(_known.Met);
            await dialler.SendProof();
            Assert.Equal((byte)PeerDirectoryAnswer.OnlyDirectory, await dialler.ReceiveAnswer());
            Assert.Equal([(new NodeId(2), 22ul)], _known.Met);
            Assert.Empty(_known.Said);
            await dialler.SendAnswer(2, proven: 2);

            Assert.Null(await accepting);
            Assert.Equal([(new NodeId(2), PeerDirectoryAnswer.Known)], _known.Said);
        });
    }

    [Fact]
    public async Task An_answer_counts_with_its_proof_only()
    {
        await WithAcceptor(async (dialler, accepting) =>
        {
            await dialler.ExchangeHellos();
            await dialler.SendProof();
            await dialler.ReceiveAnswer();
            await dialler.SendAnswer(3, proven: 2);

            Assert.Equal(PeerRefusal.Secret, Assert.IsType<PeerHandshakeException>(await accepting).Reason);
            Assert.Empty(_known.Said);
        });
    }

    [Theory]
    [InlineData(0)]
    [InlineData(4)]
    public async Task An_answer_that_does_not_exist_is_refused(byte answer)
    {
        await WithAcceptor(async (dialler, accepting) =>
        {
            await dialler.ExchangeHellos();
            await dialler.SendProof();
            await dialler.ReceiveAnswer();
            await dialler.SendAnswer(answer, proven: answer);

            Assert.Equal(PeerRefusal.Malformed, Assert.IsType<PeerHandshakeException>(await accepting).Reason);
            Assert.Empty(_known.Said);
        });
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task A_stranger_cannot_say_that_this_directory_is_another_one(bool afterHellos)
    {
        await WithAcceptor(async (dialler, accepting) =>
        {
            if (afterHellos)
            {
                await dialler.ExchangeHellos();
            }

            await dialler.Send(3, [(byte)PeerRefusal.Directory]);

            PeerHandshakeException refusal = Assert.IsType<PeerHandshakeException>(await accepting);
            Assert.Equal((PeerRefusal.Directory, true), (refusal.Reason, refusal.ByOther));
            Assert.Empty(_known.Met);
            Assert.Empty(_known.Said);
        });
    }

    [Fact]
    public async Task Changed_bytes_bring_nothing_about()
    {
        Random random = new(11);
        for (int round = 0; round < 300; round++)
        {
            await WithAcceptor(async (dialler, _) =>
            {
                // One to three bytes of the dialler's hello change on the way, or the hello ends early; the proof is
                // right for what was sent before.
                byte[] changed = [.. dialler.Hello[..random.Next(dialler.Hello.Length / 2, dialler.Hello.Length + 1)]];
                for (int i = random.Next(changed.Length == dialler.Hello.Length ? 1 : 0, 4); i > 0; i--)
                {
                    changed[random.Next(changed.Length)] ^= (byte)random.Next(1, 256);
                }

                await dialler.Send((byte)(random.Next(20) == 0 ? random.Next(6) : 1), changed);
                byte[] rest = new byte[random.Next(200)];
                random.NextBytes(rest);
                await dialler.Send(2, rest);
            }, ends: true);
        }

        Assert.Empty(_known.Met);
        Assert.Empty(_known.Said);
    }

    /// <summary>
    /// Runs an acceptor beside <paramref name="dial"/>, which gets the task of its refusal; null is success.
    /// </summary>
    private async Task WithAcceptor(Func<HandDialler, Task<Exception?>, Task> dial, bool ends = false)
    {
        (Stream a, Stream b) = await LoopbackPair.ConnectAsync();
        await using Stream server = a;
        await using Stream client = b;
        Task<Exception?> accepting = Task.Run<Exception?>(
            () => Record.Exception(() => new PeerHandshake(_options, server, new byte[32]).Accept()));
        await dial(new HandDialler(client), accepting).WaitAsync(s_limit);
        if (ends)
        {
            await client.DisposeAsync();
            Exception? failure = await accepting.WaitAsync(s_limit);
            Assert.True(
                failure is PeerHandshakeException or IOException, failure?.ToString() ?? "the handshake went on");
        }
    }
}
