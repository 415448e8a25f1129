using System.Buffers.Binary;
using System.Security.Cryptography;
using Kahuna.Server.Primitives;
using Kahuna.Server.Transport;

namespace Kahuna.Tests.Transport;

/// <summary>
/// The dialler's side of the handshake, written from the layout that <see cref="PeerHandshake"/> documents. Owned by a
/// test.
/// </summary>
internal sealed class HandDialler(Stream stream)
{
    private readonly byte[] _hello =
        new PeerHello(
            PeerProtocol.Versions.Max, new NodeId(2), new NodeId(1), 3, new byte[PeerHello.NonceBytes], "test")
        {
            DirectoryId = 22,
            Voters = new VoterSet([new NodeId(1), new NodeId(2), new NodeId(3)]),
        }.Encode();
    private byte[] _theirs = [];

    public byte[] Hello => _hello;

    public async Task<byte[]> ExchangeHellos()
    {
        await Send(1, _hello);
        (byte kind, _theirs) = await Receive();
        Assert.Equal(1, kind);
        return _theirs;
    }

    public Task SendProof() => Send(2, Proof("kahuna peer dialler", []));

    public async Task<byte> ReceiveAnswer()
    {
        (byte kind, byte[] body) = await Receive();
        Assert.Equal((4, 33), (kind, body.Length));
        Assert.Equal(Proof("kahuna peer acceptor", body[..1]), body[1..]);
        return body[0];
    }

    /// <summary>Says <paramref name="answer"/> with the proof for <paramref name="proven"/>.</summary>
    public Task SendAnswer(byte answer, byte proven) =>
        Send(4, [answer, .. Proof("kahuna peer answer of the dialler", [proven])]);

    public async Task Send(byte kind, byte[] body)
    {
        byte[] message = [kind, 0, (byte)body.Length, (byte)(body.Length >> 8), .. body];
        await stream.WriteAsync(message);
    }

    public async Task<(byte Kind, byte[] Body)> Receive()
    {
        byte[] header = new byte[4];
        await stream.ReadExactlyAsync(header);
        byte[] body = new byte[BinaryPrimitives.ReadUInt16LittleEndian(header.AsSpan(2))];
        await stream.ReadExactlyAsync(body);
        return (header[0], body);
    }

    private byte[] Proof(string label, byte[] answer)
    {
        byte[] certificateHash = new byte[32];
        byte[] text =
        [
            .. System.Text.Encoding.ASCII.GetBytes(label),
            .. Part(_hello),
            .. Part(_theirs),
            .. Part(certificateHash),
            .. answer,
        ];
        return HMACSHA256.HashData(TestNode.Secret, text);
    }

    private static byte[] Part(byte[] bytes)
    {
        byte[] part = new byte[4 + bytes.Length];
        BinaryPrimitives.WriteInt32LittleEndian(part, bytes.Length);
        bytes.CopyTo(part, 4);
        return part;
    }
}
