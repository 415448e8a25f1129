using System.Buffers.Binary;
using System.Globalization;
using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Storage.States;

/// <summary>
/// Keys and values of a state in RocksDB. Each generation of a group's state has a column family, <c>GROUP-GENERATION</c>: <c>u32 group, 'k', u32 row of the key (both big endian)</c> has the record, <c>u32 group, 'm'</c> the mark. In the
/// default column family <c>u32 0, "version"</c> has the format's version (u32, little endian). Stateless.
/// </summary>
internal static class RocksStateFormat
{
    public const uint Version = 4;

    /// <summary>Length of the group and the kind, with which all keys of states begin.</summary>
    public const int PrefixBytes = 5;

    /// <summary>Length of a record's key.</summary>
    public const int RecordKeyBytes = PrefixBytes + sizeof(uint);

    private const byte RecordKind = (byte)'k';
    private const byte MarkKind = (byte)'m';

    public static ReadOnlySpan<byte> VersionKey => "\0\0\0\0version"u8;

    /// <summary>The column family of a generation of a group's state.</summary>
    public static string FamilyOf(GroupId group, long generation) => string.Create(CultureInfo.InvariantCulture, $"{group.Value}-{generation}");

    /// <summary>Group and generation of a column family; false when the name is none of ours.</summary>
    public static bool TryReadFamily(string name, out GroupId group, out long generation)
    {
        int dash = name.IndexOf('-', StringComparison.Ordinal);
        group = default;
        generation = 0;
        if (dash < 0 || !uint.TryParse(name.AsSpan(0, dash), NumberStyles.None, CultureInfo.InvariantCulture, out uint number))
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

    /// <summary>What the keys of all records of a group begin with.</summary>
    public static void WriteRecordPrefix(Span<byte> key, GroupId group) => WritePrefix(key, group, RecordKind);

    /// <summary>The key of a group's mark.</summary>
    public static void WriteMarkKey(Span<byte> key, GroupId group) => WritePrefix(key, group, MarkKind);

    /// <summary>The mark in a value; null when it is none.</summary>
    public static StateMark? ReadMark(ReadOnlySpan<byte> value) => value.Length == StateMark.Bytes ? StateMark.Read(value) : null;

    private static void WritePrefix(Span<byte> key, GroupId group, byte kind)
    {
        BinaryPrimitives.WriteUInt32BigEndian(key, group.Value);
        key[4] = kind;
    }
}
