using System.Buffers.Binary;
using System.Text;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Transport;

/// <summary>
/// The first message of each side. Immutable.
/// <code>
/// hello:  "KPLH", u16 version, u16 from, u16 to, u8 flags (1: rebuilt), u8 voters, u32 partitions,
/// u64 directory id, nonce[32], u8 length, cluster id (UTF-8), for each voter u16 id, ascending
/// </code>
/// The version comes first, so that later versions can be recognized.
/// </summary>
internal sealed record PeerHello(
    ushort Version, NodeId From, NodeId To, int Partitions, ReadOnlyMemory<byte> Nonce, string ClusterId)
{
    public const int NonceBytes = 32;

    private const int FixedBytes = NonceOffset + NonceBytes + 1;

    private const int NonceOffset = 24;

    private const byte RebuiltFlag = 1;

    /// <summary>More than any cluster has. A stranger's longer list is not read and does not reach the log.</summary>
    private const int VotersMax = 32;

    private static ReadOnlySpan<byte> Magic => "KPLH"u8;

    /// <summary>The sender's data directory; never 0.</summary>
    public ulong DirectoryId { get; init; }

    /// <summary>The voters that the sender was started with.</summary>
    public VoterSet Voters { get; init; } = new([]);

    /// <summary>Whether the sender's directory was rebuilt and is not restored yet.</summary>
    public bool Rebuilt { get; init; }

    public byte[] Encode()
    {
        byte[] bytes =
            new byte[FixedBytes + Encoding.UTF8.GetByteCount(ClusterId) + (Voters.Ids.Count * sizeof(ushort))];
        Span<byte> span = bytes;
        Magic.CopyTo(span);
        BinaryPrimitives.WriteUInt16LittleEndian(span[4..], Version);
        BinaryPrimitives.WriteUInt16LittleEndian(span[6..], From.Value);
        BinaryPrimitives.WriteUInt16LittleEndian(span[8..], To.Value);
        span[10] = Rebuilt ? RebuiltFlag : (byte)0;
        span[11] = checked((byte)Voters.Ids.Count);
        BinaryPrimitives.WriteUInt32LittleEndian(span[12..], (uint)Partitions);
        BinaryPrimitives.WriteUInt64LittleEndian(span[16..], DirectoryId);
        Nonce.Span.CopyTo(span[NonceOffset..]);
        span[FixedBytes - 1] = (byte)Encoding.UTF8.GetBytes(ClusterId, span[FixedBytes..]);
        WriteVoters(Voters, span[(FixedBytes + span[FixedBytes - 1])..]);
        return bytes;
    }

    /// <summary>Writes the ids, two bytes each.</summary>
    public static void WriteVoters(VoterSet voters, Span<byte> target)
    {
        for (int i = 0; i < voters.Ids.Count; i++)
        {
            BinaryPrimitives.WriteUInt16LittleEndian(target[(i * sizeof(ushort))..], voters.Ids[i].Value);
        }
    }

    /// <summary>Reads ids, two bytes each. Null when they are not ascending, too many, or truncated.</summary>
    public static VoterSet? ReadVoters(ReadOnlySpan<byte> source)
    {
        if (source.Length > VotersMax * sizeof(ushort))
        {
            return null;
        }

        NodeId[] ids = new NodeId[source.Length / sizeof(ushort)];
        for (int i = 0; i < ids.Length; i++)
        {
            ids[i] = new NodeId(BinaryPrimitives.ReadUInt16LittleEndian(source[(i * sizeof(ushort))..]));
        }

        VoterSet voters = new(ids);
        return source.Length % sizeof(ushort) == 0 && voters.Ids.SequenceEqual(ids) ? voters : null;
    }

    /// <summary>Decodes a hello; null if the bytes are none. Of another version only the version is read.</summary>
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

        if (bytes.Length < FixedBytes
            || bytes.Length != FixedBytes + bytes[FixedBytes - 1] + (bytes[11] * sizeof(ushort)))
        {
            return null;
        }

        ReadOnlySpan<byte> clusterId = bytes.Slice(FixedBytes, bytes[FixedBytes - 1]);
        VoterSet? voters = ReadVoters(bytes[(FixedBytes + clusterId.Length)..]);

        ulong directoryId = BinaryPrimitives.ReadUInt64LittleEndian(bytes[16..]);
        if (bytes[10] > RebuiltFlag || voters is null || directoryId == 0)
        {
            return null;
        }

        return new PeerHello(
            version,
            new NodeId(BinaryPrimitives.ReadUInt16LittleEndian(bytes[6..])),
            new NodeId(BinaryPrimitives.ReadUInt16LittleEndian(bytes[8..])),
            (int)Math.Min(BinaryPrimitives.ReadUInt32LittleEndian(bytes[12..]), int.MaxValue),
            bytes.Slice(NonceOffset, NonceBytes).ToArray(),
            Encoding.UTF8.GetString(clusterId))
        {
            DirectoryId = directoryId,
            Voters = voters,
            Rebuilt = bytes[10] == RebuiltFlag,
        };
    }
}
