using System.Buffers.Binary;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Storage;

/// <summary>
/// The fixed front of every log record.
/// <code>
/// u32 checksum, u32 payload length, u32 kind, u32 group, u64 number, u32 count, u32 zero; payload; zeros up to a multiple of 8
/// </code>
/// <paramref name="Number"/> is the first entry's index, the index that a restart names, or a batch's number; <paramref name="Count"/> counts entries, or groups of a checkpoint.
/// </summary>
internal readonly record struct RecordHeader(RecordKind Kind, GroupId Group, ulong Number, uint Count, int PayloadLength)
{
    public const int Bytes = 32;

    /// <summary>Bytes of the whole record with its padding.</summary>
    public long RecordBytes => LogRecord.Align((long)Bytes + PayloadLength);

    /// <summary>Reads a header without its checksum; false when it cannot be one.</summary>
    public static bool TryRead(ReadOnlySpan<byte> source, out RecordHeader header)
    {
        uint length = BinaryPrimitives.ReadUInt32LittleEndian(source[4..]);
        uint kind = BinaryPrimitives.ReadUInt32LittleEndian(source[8..]);
        header = new RecordHeader(
            (RecordKind)kind,
            new GroupId(BinaryPrimitives.ReadUInt32LittleEndian(source[12..])),
            BinaryPrimitives.ReadUInt64LittleEndian(source[16..]),
            BinaryPrimitives.ReadUInt32LittleEndian(source[24..]),
            (int)length);
        return length <= LogRecord.PayloadBytesMax
            && kind is >= (uint)RecordKind.Batch and <= (uint)RecordKind.Restart
            && BinaryPrimitives.ReadUInt32LittleEndian(source[28..]) == 0;
    }

    /// <summary>Writes everything but the checksum.</summary>
    public void Write(Span<byte> target)
    {
        BinaryPrimitives.WriteUInt32LittleEndian(target[4..], (uint)PayloadLength);
        BinaryPrimitives.WriteUInt32LittleEndian(target[8..], (uint)Kind);
        BinaryPrimitives.WriteUInt32LittleEndian(target[12..], Group.Value);
        BinaryPrimitives.WriteUInt64LittleEndian(target[16..], Number);
        BinaryPrimitives.WriteUInt32LittleEndian(target[24..], Count);
        BinaryPrimitives.WriteUInt32LittleEndian(target[28..], 0);
    }
}
