using System.Buffers.Binary;
using System.Text;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Transport;

/// <summary>
/// The first message of each side. Immutable.
/// <code>
/// hello:  "KPLH", u16 version, u16 from, u16 to, u8 flags (1: rebuilt), u8 zero, u32 partitions, u64 directory id, nonce[32], u8 length,
/// cluster id (UTF-8)
/// </code>
/// The version comes first, so that any later version can be told from this one.
/// </summary>
internal sealed record PeerHello(ushort Version, NodeId From, NodeId To, int Partitions, ReadOnlyMemory<byte> Nonce, string ClusterId)
{
    public const int NonceBytes = 32;

    private const int FixedBytes = NonceOffset + NonceBytes + 1;

    private const int NonceOffset = 24;

    private const byte RebuiltFlag = 1;

    private static ReadOnlySpan<byte> Magic => "KPLH"u8;

    /// <summary>The data directory of the sender; never 0.</summary>
    public ulong DirectoryId { get; init; }

    /// <summary>Whether the sender's directory was rebuilt and is not restored yet.</summary>
    public bool Rebuilt { get; init; }

    public byte[] Encode()
    {
        byte[] bytes = new byte[FixedBytes + Encoding.UTF8.GetByteCount(ClusterId)];
        Span<byte> span = bytes;
        Magic.CopyTo(span);
        BinaryPrimitives.WriteUInt16LittleEndian(span[4..], Version);
        BinaryPrimitives.WriteUInt16LittleEndian(span[6..], From.Value);
        BinaryPrimitives.WriteUInt16LittleEndian(span[8..], To.Value);
        span[10] = Rebuilt ? RebuiltFlag : (byte)0;
        BinaryPrimitives.WriteUInt32LittleEndian(span[12..], (uint)Partitions);
        BinaryPrimitives.WriteUInt64LittleEndian(span[16..], DirectoryId);
        Nonce.Span.CopyTo(span[NonceOffset..]);
        span[FixedBytes - 1] = (byte)Encoding.UTF8.GetBytes(ClusterId, span[FixedBytes..]);
        return bytes;
    }

    /// <summary>Null when the bytes are no hello. Of another version only the version is read.</summary>
    public static PeerHello? Decode(ReadOnlySpan<byte> bytes)
    {
        if (bytes.Length < 6 || !bytes.StartsWith(Magic))
        {
            return null;
        }

        ushort version = BinaryPrimitives.ReadUInt16LittleEndian(bytes[4..]);
        if (version != PeerProtocol.Version)
        {
            return new PeerHello(version, NodeId.None, NodeId.None, 0, default, string.Empty);
        }

        if (bytes.Length < FixedBytes || bytes.Length != FixedBytes + bytes[FixedBytes - 1])
        {
            return null;
        }

        ulong directoryId = BinaryPrimitives.ReadUInt64LittleEndian(bytes[16..]);
        if (bytes[10] > RebuiltFlag || bytes[11] != 0 || directoryId == 0)
        {
            return null;
        }

        return new PeerHello(
            version,
            new NodeId(BinaryPrimitives.ReadUInt16LittleEndian(bytes[6..])),
            new NodeId(BinaryPrimitives.ReadUInt16LittleEndian(bytes[8..])),
            (int)Math.Min(BinaryPrimitives.ReadUInt32LittleEndian(bytes[12..]), int.MaxValue),
            bytes.Slice(NonceOffset, NonceBytes).ToArray(),
            Encoding.UTF8.GetString(bytes[FixedBytes..]))
        {
            DirectoryId = directoryId,
            Rebuilt = bytes[10] == RebuiltFlag,
        };
    }
}
