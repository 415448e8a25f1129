using System.Buffers.Binary;
using System.Security.Cryptography;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Transport;

/// <summary>
/// Mutual authentication of two nodes, before any other byte is read. Run by the connection's own thread, on a blocking
/// stream.
/// <code>
/// message:    u8 kind (1 hello, 2 proof, 3 refusal, 4 answer), u8 zero, u16 length, body
/// 1. dialler  → hello with its nonce
/// 2. acceptor → hello with its nonce, or a refusal (u8 reason; with reason 10 also its sender's voters: u16 each)
/// 3. dialler  → proof: HMAC-SHA256(secret, "kahuna peer dialler" ‖ transcript)
/// 4. acceptor → answer: u8 answer, HMAC-SHA256(secret, "kahuna peer acceptor" ‖ transcript ‖ answer), or a refusal
/// 5. dialler  → answer: u8 answer, HMAC-SHA256(secret, "kahuna peer answer of the dialler" ‖ transcript ‖ answer)
/// transcript: u32 length and bytes of: the dialler's hello, the acceptor's hello,
///             SHA-256 of the certificate that the acceptor showed,
///             and, if the dialler showed one too, SHA-256 of that
/// </code>
/// The secret itself is never sent. While it is being replaced a node knows two: the dialler proves with its first one,
/// and both go on with that. Both nonces make every transcript unique. The hellos bind ids, cluster, voters and
/// partitions, versions and feature levels. A dialler that offers less than it speaks, because the other side seemed
/// not to know more, says so in its nonce, and an acceptor that does know more refuses: nobody in the middle can bring
/// two nodes down to an earlier version. The certificates' hashes bind the proof to the ends of this TLS connection,
/// which defeats a man in the middle (docs/adr/0046-mutual-tls.md). The labels keep one role's proof from serving as
/// the other's. The dialler proves itself first, so a stranger that connects gets nothing to guess the secret from. An
/// answer states what its sender knows about the data directory in the other's hello
/// (<see cref="PeerDirectoryAnswer"/>). Each side consults its own record only after it has verified the other's proof,
/// and an answer counts only with its proof. So only nodes of the cluster can make a node forget another one, or stop.
/// </summary>
/// <param name="options">The options of the links.</param>
/// <param name="stream">The connection.</param>
/// <param name="acceptorHash">SHA-256 of the certificate that the acceptor showed.</param>
/// <param name="dialler">The certificate that the dialler showed; null: none.</param>
internal sealed class PeerHandshake(
    PeerLinksOptions options, Stream stream, byte[] acceptorHash, PeerCertificate? dialler = null)
{
    private const int HeaderBytes = 4;

    /// <summary>Twice the size of a hello with the longest cluster id.</summary>
    private const int BodyBytesMax = 640;

    private const byte HelloKind = 1;
    private const byte ProofKind = 2;
    private const byte RefusalKind = 3;
    private const byte AnswerKind = 4;

    private static ReadOnlySpan<byte> DiallerLabel => "kahuna peer dialler"u8;

    private static ReadOnlySpan<byte> AcceptorLabel => "kahuna peer acceptor"u8;

    private static ReadOnlySpan<byte> DiallerAnswerLabel => "kahuna peer answer of the dialler"u8;

    /// <summary>What both sides prove with.</summary>
    private byte[] _secret = [];

    /// <summary>
    /// After <see cref="Accept"/> of a node that would be refused in <see cref="PeerTlsMode.Mutual"/>: why. Else null.
    /// </summary>
    public string? CertificateObjection { get; private set; }

    /// <summary>
    /// The dialler's part. Returns when both sides are proven and accept each other's data directory.
    /// </summary>
    /// <exception cref="PeerHandshakeException">One side refused.</exception>
    public ProvenPeer Dial(NodeId peer) => Dial(peer, options.Versions.Max);

    /// <inheritdoc cref="Dial(NodeId)"/>
    /// <param name="peer">The node that is to answer.</param>
    /// <param name="offer">The highest version to offer: less than this node speaks after a refusal.</param>
    public ProvenPeer Dial(NodeId peer, ushort offer)
    {
        _secret = options.Secrets.Own;
        byte[] own = NewHello(peer, offer).Encode();
        Send(HelloKind, own);
        byte[] theirs = Expect(HelloKind);
        PeerHello hello = Read(theirs);
        if (hello.From != peer)
        {
            throw Refused(PeerRefusal.WrongNode, $"it is node {hello.From}, not node {peer}");
        }

        Check(hello);
        if (options.TlsMode == PeerTlsMode.Mutual && dialler is null)
        {
            throw Refused(PeerRefusal.Certificate, "it does not ask for a certificate; give it --peer-tls mutual");
        }

        Send(ProofKind, Proof(DiallerLabel, own, theirs, []));
        PeerDirectoryAnswer heard = ReadAnswer(Expect(AnswerKind), AcceptorLabel, own, theirs);
        CheckAccepted(hello, heard);
        CheckLevels(hello);
        PeerDirectoryAnswer answer = options.Directory.Meet(peer, hello.DirectoryId, hello.Rebuilt);
        SendAnswer(answer, DiallerAnswerLabel, own, theirs);
        CheckDirectory(hello, answer);
        options.Directory.Heard(peer, heard);
        return new ProvenPeer(peer, hello.DirectoryId);
    }

    /// <summary>
    /// The acceptor's part. Returns the peer when both sides are proven and accept each other's data directory.
    /// </summary>
    /// <exception cref="PeerHandshakeException">One side refused.</exception>
    public ProvenPeer Accept()
    {
        PeerHello hello = ProveDialler(out byte[] own, out byte[] theirs);
        PeerDirectoryAnswer answer = options.Directory.Meet(hello.From, hello.DirectoryId, hello.Rebuilt);
        SendAnswer(answer, AcceptorLabel, theirs, own);
        CheckDirectory(hello, answer);
        CheckLevels(hello);
        PeerDirectoryAnswer heard = ReadAnswer(Expect(AnswerKind), DiallerAnswerLabel, theirs, own);
        CheckAccepted(hello, heard);
        options.Directory.Heard(hello.From, heard);
        return new ProvenPeer(hello.From, hello.DirectoryId);
    }

    /// <summary>The acceptor's part until the dialler is proven. Until then refusals are sent.</summary>
    private PeerHello ProveDialler(out byte[] own, out byte[] theirs)
    {
        try
        {
            theirs = Expect(HelloKind);
            PeerHello hello = Read(theirs);
            Check(hello);
            if (!options.Peers.Any(peer => peer.Id == hello.From) || hello.From == options.Self)
            {
                throw Refused(
                    PeerRefusal.UnknownNode,
                    $"it says it is node {hello.From}, which is no other node of this cluster");
            }

            if (hello.From.Value < options.Self.Value)
            {
                throw Refused(
                    PeerRefusal.WrongDirection,
                    $"node {hello.From} connects to node {options.Self}, but the greater id "
                        + "connects to the smaller one");
            }

            CheckCertificate(hello.From);
            own = NewHello(hello.From, Math.Min(hello.Version, options.Versions.Max)).Encode();
            Send(HelloKind, own);
            if (!Proves(Expect(ProofKind), theirs, own))
            {
                throw Refused(
                    PeerRefusal.Secret, $"it says it is node {hello.From}, but does not know the cluster's secret");
            }

            return hello;
        }
        catch (PeerHandshakeException refusal) when (!refusal.ByOther)
        {
            TrySendRefusal(refusal.Reason);
            throw;
        }
    }

    /// <summary>Checks that the dialler's certificate is that of the node that it says it is.</summary>
    private void CheckCertificate(NodeId claimed)
    {
        if (options.TlsMode == PeerTlsMode.Secret)
        {
            return;
        }

        Uri address = options.Peers.First(peer => peer.Id == claimed).Address;
        CertificateObjection = dialler is null ? "it shows no certificate" : dialler.Objection(address);
        if (CertificateObjection is { } objection && options.TlsMode == PeerTlsMode.Mutual)
        {
            throw Refused(PeerRefusal.Certificate, $"it says it is node {claimed}, but {objection}");
        }
    }

    /// <summary>The dialler knows one of the secrets. The rest of the handshake is proven with the same.</summary>
    private bool Proves(byte[] proof, byte[] diallerHello, byte[] acceptorHello)
    {
        foreach (byte[] secret in options.Secrets.Accepted)
        {
            _secret = secret;
            if (CryptographicOperations.FixedTimeEquals(proof, Proof(DiallerLabel, diallerHello, acceptorHello, [])))
            {
                return true;
            }
        }

        return false;
    }

    private PeerHello NewHello(NodeId to, ushort version)
    {
        byte[] nonce = RandomNumberGenerator.GetBytes(PeerHello.NonceBytes);
        if (version < options.Versions.Max)
        {
            PeerHello.MarkFallback(nonce, options.Versions.Max);
        }

        return new PeerHello(version, options.Self, to, options.Partitions, nonce, options.ClusterId)
        {
            VersionMin = options.Versions.Min,
            Features = options.Features,
            ClusterLevel = options.ClusterLevel(),
            DirectoryId = options.Directory.OwnDirectoryId,
            Voters = options.Voters,
            Rebuilt = options.Directory.Rebuilt,
        };
    }

    /// <summary>A hello of a version that this node speaks; nothing else of another one is looked at.</summary>
    private PeerHello Read(byte[] body)
    {
        PeerHello hello = PeerHello.Decode(body) ?? throw Refused(PeerRefusal.Malformed, "it sent no handshake");
        if (!hello.Versions.Overlaps(options.Versions))
        {
            throw Refused(
                PeerRefusal.Version,
                $"it speaks {hello.Versions} between nodes, this node {options.Versions}; run releases that are next "
                    + "to each other, the older one first to be upgraded");
        }

        if (hello.VersionSpoken > hello.Version && hello.Version < options.Versions.Max)
        {
            throw Refused(
                PeerRefusal.Version,
                $"it offers version {hello.Version} between nodes, but both speak a later one; it tries again");
        }

        return hello;
    }

    private void Check(PeerHello hello)
    {
        if (hello.ClusterId != options.ClusterId)
        {
            throw Refused(PeerRefusal.ClusterId, "it belongs to another cluster id");
        }

        if (hello.To != options.Self)
        {
            throw Refused(PeerRefusal.WrongNode, $"it looks for node {hello.To}, this is node {options.Self}");
        }

        if (!hello.Voters.Equals(options.Voters))
        {
            throw Refused(PeerRefusal.Voters, OtherVoters(hello.Voters));
        }

        if (hello.Partitions != options.Partitions)
        {
            throw Refused(
                PeerRefusal.Partitions, $"it has {hello.Partitions} partitions, this node {options.Partitions}");
        }
    }

    private string OtherVoters(VoterSet theirs) =>
        $"its cluster has the nodes {theirs}, this node's the nodes {options.Voters}; compare --peers on both";

    /// <summary>
    /// Refuses the link if this node knows another directory of the peer. The peer already has the answer.
    /// </summary>
    private static void CheckDirectory(PeerHello hello, PeerDirectoryAnswer answer)
    {
        if (answer == PeerDirectoryAnswer.AnotherDirectory)
        {
            throw Refused(
                PeerRefusal.Directory,
                $"node {hello.From} shows the data directory {hello.DirectoryId:x16}, and another one is known here; "
                    + "it was emptied or replaced, and must be started with --rebuild");
        }
    }

    /// <summary>
    /// Refuses the link if one of the two does not support the feature level that the other one knows the cluster to
    /// have. The one that does not support it must stop. Only after the other's proof: a stranger's word stops no node.
    /// </summary>
    private void CheckLevels(PeerHello proven)
    {
        if (!options.Features.Contains(proven.ClusterLevel))
        {
            options.LevelUnsupported(proven.ClusterLevel, proven.From);
            throw Refused(
                PeerRefusal.FeatureLevel,
                $"the cluster has feature level {proven.ClusterLevel}, and this node's version supports "
                    + $"{options.Features} only");
        }

        if (options.ClusterLevel() is var level && !proven.Features.Contains(level))
        {
            throw Refused(
                PeerRefusal.FeatureLevel,
                $"node {proven.From} supports feature {proven.Features} only, and the cluster has level {level}; start "
                    + "it with a version that supports that level");
        }
    }

    private void CheckAccepted(PeerHello hello, PeerDirectoryAnswer heard)
    {
        if (heard == PeerDirectoryAnswer.AnotherDirectory)
        {
            options.Directory.Heard(hello.From, heard);
            throw RefusedByOther(PeerRefusal.Directory, PeerRefusals.Describe(PeerRefusal.Directory));
        }
    }

    private void SendAnswer(
        PeerDirectoryAnswer answer, ReadOnlySpan<byte> label, byte[] diallerHello, byte[] acceptorHello)
    {
        ReadOnlySpan<byte> said = [(byte)answer];
        Send(AnswerKind, [.. said, .. Proof(label, diallerHello, acceptorHello, said)]);
    }

    private PeerDirectoryAnswer ReadAnswer(
        byte[] body, ReadOnlySpan<byte> label, byte[] diallerHello, byte[] acceptorHello)
    {
        ReadOnlySpan<byte> said = body.AsSpan(0, Math.Min(1, body.Length));
        if (!CryptographicOperations.FixedTimeEquals(
            body.AsSpan(said.Length), Proof(label, diallerHello, acceptorHello, said)))
        {
            throw Refused(PeerRefusal.Secret, "it does not know the cluster's secret");
        }

        PeerDirectoryAnswer answer = (PeerDirectoryAnswer)said[0];
        return Enum.IsDefined(answer) ? answer : throw Refused(PeerRefusal.Malformed, "it sent no handshake");
    }

    private byte[] Proof(ReadOnlySpan<byte> label, byte[] diallerHello, byte[] acceptorHello, ReadOnlySpan<byte> answer)
    {
        using IncrementalHash hmac = IncrementalHash.CreateHMAC(HashAlgorithmName.SHA256, _secret);
        hmac.AppendData(label);
        Span<byte> length = stackalloc byte[4];
        byte[][] certificates = dialler is null ? [acceptorHash] : [acceptorHash, dialler.Hash];
        foreach (byte[] part in (byte[][])[diallerHello, acceptorHello, .. certificates])
        {
            BinaryPrimitives.WriteInt32LittleEndian(length, part.Length);
            hmac.AppendData(length);
            hmac.AppendData(part);
        }

        hmac.AppendData(answer);
        return hmac.GetHashAndReset();
    }

    private void Send(byte kind, ReadOnlySpan<byte> body)
    {
        byte[] message = new byte[HeaderBytes + body.Length];
        message[0] = kind;
        BinaryPrimitives.WriteUInt16LittleEndian(message.AsSpan(2), (ushort)body.Length);
        body.CopyTo(message.AsSpan(HeaderBytes));
        stream.Write(message, 0, message.Length);
    }

    private void TrySendRefusal(PeerRefusal reason)
    {
        try
        {
            byte[] body = new byte[1 + (reason == PeerRefusal.Voters ? options.Voters.Ids.Count * sizeof(ushort) : 0)];
            body[0] = (byte)reason;
            if (reason == PeerRefusal.Voters)
            {
                PeerHello.WriteVoters(options.Voters, body.AsSpan(1));
            }

            Send(RefusalKind, body);
        }
        catch (IOException)
        {
            // The other side has disconnected; the refusal stands anyway.
        }
    }

    private byte[] Expect(byte kind)
    {
        byte[] header = new byte[HeaderBytes];
        stream.ReadExactly(header, 0, HeaderBytes);
        int length = BinaryPrimitives.ReadUInt16LittleEndian(header.AsSpan(2));
        if (header[1] != 0 || length > BodyBytesMax)
        {
            throw Refused(PeerRefusal.Malformed, "it sent no handshake");
        }

        byte[] body = new byte[length];
        stream.ReadExactly(body, 0, length);
        if (header[0] == RefusalKind && length > 0)
        {
            PeerRefusal reason = (PeerRefusal)body[0];
            string words = reason == PeerRefusal.Voters && PeerHello.ReadVoters(body.AsSpan(1)) is { } theirs
                ? OtherVoters(theirs)
                : PeerRefusals.Describe(reason);
            throw RefusedByOther(reason, words);
        }

        return header[0] == kind ? body : throw Refused(PeerRefusal.Malformed, "it sent no handshake");
    }

    private static PeerHandshakeException Refused(PeerRefusal reason, string message) => new(reason, message);

    private static PeerHandshakeException RefusedByOther(PeerRefusal reason, string message) =>
        new(reason, message, byOther: true);
}
