using System.Buffers.Binary;
using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Storage.States;

/// <summary>
/// Keys and values of a state in RocksDB: <c>u32 group, 'k', u32 row of the key (both big endian)</c> has the record, <c>u32 group, 'm'</c> the mark, and
/// <c>u32 0, "version"</c> the format's version (u32, little endian): group 0 has no state. Stateless.
/// </summary>
internal static class RocksStateFormat
{
    public const uint Version = 2;

    /// <summary>Length of the group and the kind, with which all keys of states begin.</summary>
    public const int PrefixBytes = 5;

    /// <summary>Length of a record's key.</summary>
    public const int RecordKeyBytes = PrefixBytes + sizeof(uint);

    private const byte RecordKind = (byte)'k';
    private const byte MarkKind = (byte)'m';

    public static ReadOnlySpan<byte> VersionKey => "\0\0\0\0version"u8;

    /// <summary>The key of a record.</summary>
    public static void WriteRecordKey(Span<byte> key, GroupId group, uint row)
    {
        WritePrefix(key, group, RecordKind);
        BinaryPrimitives.WriteUInt32BigEndian(key[PrefixBytes..], row);
    }

    /// <summary>What the keys of all records of a group begin with.</summary>
    public static void WriteRecordPrefix(Span<byte> key, GroupId group) => WritePrefix(key, group, RecordKind);

    /// <summary>The first key behind all records of a group.</summary>
    public static void WriteRecordEnd(Span<byte> key, GroupId group) => WritePrefix(key, group, RecordKind + 1);

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
