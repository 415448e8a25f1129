using System.Buffers.Binary;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Storage.Checkpoints;

/// <summary>
/// Format of a snapshot file. Header: <c>8 bytes "KAHUNASN", u16 version, u16 feature level of the mark - 1, u32 group,
/// mark (<see cref="CheckpointMark"/>), u32 CRC-32C of all before</c>. Then pieces: <c>u32 length, u32 number from 1
/// on, that many bytes of records (each u32 length, record), u32 CRC-32C of the piece before it</c>; the last piece has
/// the length 0. Little endian. Stateless.
/// </summary>
internal static class SnapshotFormat
{
    public const ushort Version = 4;
    public const int HeaderBytes = 8 + 4 + 4 + CheckpointMark.Bytes + 4;
    public const int PieceHeaderBytes = 8;
    public const int ChecksumBytes = 4;

    /// <summary>Size at which a piece ends; it exceeds it by at most one record.</summary>
    public const int PieceBytesTarget = 256 * 1024;

    /// <summary>Longest piece: a key and its history at their limits.</summary>
    public const int PieceBytesMax = 1 << 30;

    public static ReadOnlySpan<byte> Magic => "KAHUNASN"u8;

    public static byte[] Header(GroupId group, in CheckpointMark mark)
    {
        byte[] header = new byte[HeaderBytes];
        Magic.CopyTo(header);
        BinaryPrimitives.WriteUInt16LittleEndian(header.AsSpan(8), Version);
        BinaryPrimitives.WriteUInt16LittleEndian(header.AsSpan(10), mark.Level.Encoded);
        BinaryPrimitives.WriteUInt32LittleEndian(header.AsSpan(12), group.Value);
        mark.Write(header.AsSpan(16));
        BinaryPrimitives.WriteUInt32LittleEndian(
            header.AsSpan(HeaderBytes - ChecksumBytes), Crc32C.Of(header.AsSpan(0, HeaderBytes - ChecksumBytes)));
        return header;
    }

    /// <summary>Checks a header. Returns what is wrong, or null.</summary>
    public static string? Check(ReadOnlySpan<byte> header, GroupId group, out CheckpointMark mark)
    {
        mark = default;
        if (header.Length < HeaderBytes || !header.StartsWith(Magic))
        {
            return "it is no snapshot file";
        }

        ushort version = BinaryPrimitives.ReadUInt16LittleEndian(header[8..]);
        if (version != Version)
        {
            return $"it has the format version {version}; this program reads version {Version}";
        }

        uint checksum = BinaryPrimitives.ReadUInt32LittleEndian(header[(HeaderBytes - ChecksumBytes)..]);
        if (Crc32C.Of(header[..(HeaderBytes - ChecksumBytes)]) != checksum)
        {
            return "its header is damaged (checksum)";
        }

        uint named = BinaryPrimitives.ReadUInt32LittleEndian(header[12..]);
        mark = CheckpointMark.Read(header[16..]) with
        {
            Level = FeatureLevel.Decode(BinaryPrimitives.ReadUInt16LittleEndian(header[10..])),
        };
        return named == group.Value ? null : $"it is the state of group {named}, not of {group}";
    }
}
