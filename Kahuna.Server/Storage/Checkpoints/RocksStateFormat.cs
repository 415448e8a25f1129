using System.Buffers.Binary;
using System.Globalization;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Storage.Checkpoints;

/// <summary>
/// Keys and values of checkpoints in RocksDB. Each generation of a group's state has a column family,
/// <c>GROUP-GENERATION</c>. The key <c>u32 group, 'k', u32 row (both big endian)</c> has a record,
/// <c>u32 group, 'm'</c> has the mark, and behind it, above level 1, the mark's feature level - 1 (u16, little endian).
/// In the default column family, <c>u32 0, "version"</c> has the format's version (u32, little endian). Stateless.
/// </summary>
internal static class RocksStateFormat
{
    public const uint Version = 4;

    /// <summary>Length of the prefix of all keys: group and kind.</summary>
    public const int PrefixBytes = 5;

    /// <summary>Length of a record's key.</summary>
    public const int RecordKeyBytes = PrefixBytes + sizeof(uint);

    /// <summary>Length of a mark with a feature level.</summary>
    public const int MarkBytesMax = CheckpointMark.Bytes + sizeof(ushort);

    private const byte RecordKind = (byte)'k';
    private const byte MarkKind = (byte)'m';

    public static ReadOnlySpan<byte> VersionKey => "\0\0\0\0version"u8;

    /// <summary>The column family of a generation of a group's state.</summary>
    public static string FamilyOf(GroupId group, long generation) =>
        string.Create(CultureInfo.InvariantCulture, $"{group.Value}-{generation}");

    /// <summary>Parses group and generation of a column family. False when the name has another form.</summary>
    public static bool TryReadFamily(string name, out GroupId group, out long generation)
    {
        int dash = name.IndexOf('-', StringComparison.Ordinal);
        group = default;
        generation = 0;
        if (dash < 0
            || !uint.TryParse(name.AsSpan(0, dash), NumberStyles.None, CultureInfo.InvariantCulture, out uint number))
        {
            return false;
        }

        group = new GroupId(number);
        return long.TryParse(name.AsSpan(dash + 1), NumberStyles.None, CultureInfo.InvariantCulture, out generation);
    }

    /// <summary>The key of a record.</summary>
    public static void WriteRecordKey(Span<byte> key, GroupId group, uint row)
    {
        WritePrefix(key, group, RecordKind);
        BinaryPrimitives.WriteUInt32BigEndian(key[PrefixBytes..], row);
    }

    /// <summary>The prefix of the keys of a group's records.</summary>
    public static void WriteRecordPrefix(Span<byte> key, GroupId group) => WritePrefix(key, group, RecordKind);

    /// <summary>The key of a group's mark.</summary>
    public static void WriteMarkKey(Span<byte> key, GroupId group) => WritePrefix(key, group, MarkKind);

    /// <summary>Reads a mark; null if the value is none.</summary>
    public static CheckpointMark? ReadMark(ReadOnlySpan<byte> value) => value.Length switch
    {
        CheckpointMark.Bytes => CheckpointMark.Read(value),
        MarkBytesMax => CheckpointMark.Read(value) with
        {
            Level = FeatureLevel.Decode(BinaryPrimitives.ReadUInt16LittleEndian(value[CheckpointMark.Bytes..])),
        },
        _ => null,
    };

    /// <summary>Writes a mark. Returns its length, which is that of older formats at level 1.</summary>
    public static int WriteMark(Span<byte> value, in CheckpointMark mark)
    {
        mark.Write(value);
        if (mark.Level == FeatureLevel.First)
        {
            return CheckpointMark.Bytes;
        }

        BinaryPrimitives.WriteUInt16LittleEndian(value[CheckpointMark.Bytes..], mark.Level.Encoded);
        return MarkBytesMax;
    }

    private static void WritePrefix(Span<byte> key, GroupId group, byte kind)
    {
        BinaryPrimitives.WriteUInt32BigEndian(key, group.Value);
        key[4] = kind;
    }
}
