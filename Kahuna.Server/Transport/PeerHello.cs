using System.Buffers.Binary;
using System.Text;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Transport;

/// <summary>
/// The first message of each side. Immutable.
/// <code>
/// hello:  "KPLH", u16 version, u16 from, u16 to, u8 flags (1: rebuilt), u8 voters, u32 partitions,
///         u64 directory id, nonce[32], u8 length, cluster id (UTF-8), for each voter u16 id, ascending;
///         from version 6 on: u16 lowest version, u16 lowest and u16 highest feature level that the sender supports,
///         u16 the cluster's feature level as it knows it; above version 6: what that version adds
/// </code>
/// The version, the highest that the sender offers, comes first, so that later versions can be recognized. Later
/// versions add at the end only.
/// </summary>
internal sealed record PeerHello(
    ushort Version, NodeId From, NodeId To, int Partitions, ReadOnlyMemory<byte> Nonce, string ClusterId)
{
    public const int NonceBytes = 32;

    private const int FixedBytes = NonceOffset + NonceBytes + 1;

    private const int NonceOffset = 24;

    /// <summary>The first version whose hello names a range and feature levels, and the bytes of these.</summary>
    private const ushort RangeVersion = 6;

    private const int RangeBytes = sizeof(ushort) + FeatureRange.Bytes + sizeof(ushort);

    /// <summary>The last version before, whose hello still is read and written.</summary>
    private const ushort PlainVersion = 5;

    private const byte RebuiltFlag = 1;

    /// <summary>More than any cluster has. A stranger's longer list is not read and does not reach the log.</summary>
    private const int VotersMax = 32;

    private static ReadOnlySpan<byte> Magic => "KPLH"u8;

    /// <summary>
    /// In the last bytes of a nonce, before a u16: its sender speaks versions up to that one, and offers less because a
    /// refusal told it so.
    /// </summary>
    private static ReadOnlySpan<byte> FallbackMark => "KPLHMX"u8;

    /// <summary>The lowest version that the sender speaks.</summary>
    public ushort VersionMin { get; init; } = Version;

    /// <summary>The versions that the sender offers.</summary>
    public PeerVersions Versions => new(VersionMin, Version);

    /// <summary>The feature levels that the sender supports; level 1 alone in versions that do not say.</summary>
    public FeatureRange Features { get; init; }

    /// <summary>The cluster's feature level, as far as the sender knows.</summary>
    public FeatureLevel ClusterLevel { get; init; }

    /// <summary>The sender's data directory; never 0.</summary>
    public ulong DirectoryId { get; init; }

    /// <summary>The voters that the sender was started with.</summary>
    public VoterSet Voters { get; init; } = new([]);

    /// <summary>Whether the sender's directory was rebuilt and is not restored yet.</summary>
    public bool Rebuilt { get; init; }

    public byte[] Encode()
    {
        byte[] bytes =
            new byte[FixedBytes + Encoding.UTF8.GetByteCount(ClusterId) + (Voters.Ids.Count * sizeof(ushort))
                + (Version >= RangeVersion ? RangeBytes : 0)];
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
        if (Version >= RangeVersion)
        {
            Span<byte> range = span[^RangeBytes..];
            BinaryPrimitives.WriteUInt16LittleEndian(range, VersionMin);
            Features.Write(range[2..]);
            BinaryPrimitives.WriteUInt16LittleEndian(range[6..], checked((ushort)ClusterLevel.Value));
        }

        return bytes;
    }

    /// <summary>Marks the nonce of a dialler that offers less than it speaks, after a refusal.</summary>
    public static void MarkFallback(Span<byte> nonce, ushort versionMax)
    {
        FallbackMark.CopyTo(nonce[^8..]);
        BinaryPrimitives.WriteUInt16LittleEndian(nonce[^2..], versionMax);
    }

    /// <summary>The highest version that the sender speaks, offered or not.</summary>
    public ushort VersionSpoken =>
        Nonce.Length == NonceBytes && Nonce.Span[^8..^2].SequenceEqual(FallbackMark)
            ? Math.Max(Version, BinaryPrimitives.ReadUInt16LittleEndian(Nonce.Span[^2..]))
            : Version;

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

    /// <summary>
    /// Decodes a hello; null if the bytes are none. Of a version before the oldest known layout, and of a later one
    /// that does not have a known layout, only the version is read.
    /// </summary>
    public static PeerHello? Decode(ReadOnlySpan<byte> bytes)
    {
        if (bytes.Length < 6 || !bytes.StartsWith(Magic))
        {
            return null;
        }

        ushort version = BinaryPrimitives.ReadUInt16LittleEndian(bytes[4..]);
        if (version < PlainVersion)
        {
            return new PeerHello(version, NodeId.None, NodeId.None, 0, default, string.Empty);
        }

        PeerHello? hello = DecodeBody(version, bytes);
        return hello is null && version > RangeVersion
            ? new PeerHello(version, NodeId.None, NodeId.None, 0, default, string.Empty)
            : hello;
    }

    private static PeerHello? DecodeBody(ushort version, ReadOnlySpan<byte> bytes)
    {
        int rangeBytes = version >= RangeVersion ? RangeBytes : 0;
        if (bytes.Length < FixedBytes)
        {
            return null;
        }

        int rangeAt = FixedBytes + bytes[FixedBytes - 1] + (bytes[11] * sizeof(ushort));
        int length = rangeAt + rangeBytes;
        if (bytes.Length < length || (bytes.Length > length && version <= RangeVersion))
        {
            return null;
        }

        ushort versionMin = version;
        FeatureRange features = default;
        FeatureLevel clusterLevel = default;
        if (rangeBytes > 0 && !TryReadRange(bytes[rangeAt..], version, out versionMin, out features, out clusterLevel))
        {
            return null;
        }

        ReadOnlySpan<byte> clusterId = bytes.Slice(FixedBytes, bytes[FixedBytes - 1]);
        VoterSet? voters = ReadVoters(bytes[(FixedBytes + clusterId.Length)..rangeAt]);

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
            VersionMin = versionMin,
            Features = features,
            ClusterLevel = clusterLevel,
        };
    }

    private static bool TryReadRange(
        ReadOnlySpan<byte> source, ushort version, out ushort versionMin, out FeatureRange features,
        out FeatureLevel clusterLevel)
    {
        versionMin = BinaryPrimitives.ReadUInt16LittleEndian(source);
        ushort level = BinaryPrimitives.ReadUInt16LittleEndian(source[6..]);
        clusterLevel = level == 0 ? default : new FeatureLevel(level);
        return FeatureRange.TryRead(source[2..], out features) && versionMin > 0 && versionMin <= version && level > 0;
    }
}
