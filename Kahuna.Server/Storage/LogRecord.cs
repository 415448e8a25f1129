using System.Buffers.Binary;
using System.Numerics;
using System.Runtime.InteropServices;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Storage;

/// <summary>
/// Kind of a log record. Values are part of the log format; 0 is unused, so that zeros are never a record.
/// </summary>
internal enum RecordKind : uint
{
    /// <summary>
    /// Begins a batch. It proves that everything before it is on stable storage. A batch without records is a mark.
    /// </summary>
    Batch = 1,

    /// <summary>Consecutive entries of one group.</summary>
    Entries = 2,

    /// <summary>One group's hard state.</summary>
    HardState = 3,

    /// <summary>
    /// Hard state and last entry of all groups, at the start of a segment, so that older segments can be dropped.
    /// </summary>
    Checkpoint = 4,

    /// <summary>One group's log restarts after an entry; its earlier entries are dropped.</summary>
    Restart = 5,
}

/// <summary>
/// The header of every log record.
/// <code>
/// u32 checksum, u32 payload length, u32 kind, u32 group, u64 number, u32 count, u32 zero;
/// payload; zeros up to a multiple of 8
/// </code>
/// <paramref name="Number"/> is the first entry's index, the index that a restart names, or a batch's number;
/// <paramref name="Count"/> counts entries, or groups of a checkpoint.
/// </summary>
internal readonly record struct RecordHeader(
    RecordKind Kind, GroupId Group, ulong Number, uint Count, int PayloadLength)
{
    public const int Bytes = 32;

    /// <summary>Bytes of the whole record, including its padding.</summary>
    public long RecordBytes => LogRecord.Align((long)Bytes + PayloadLength);

    /// <summary>Reads a header without verifying the checksum. False when it cannot be one.</summary>
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

/// <summary>
/// A group's hard state and last entry when a segment begins. <paramref name="LastTerm"/> is the default if unknown.
/// Immutable.
/// </summary>
internal readonly record struct GroupCheckpoint(GroupId Group, HardState HardState, LogIndex LastIndex, Term LastTerm);

/// <summary>
/// Writes and checks log records (docs/log-format.md). A record is written with its plain checksum and <i>sealed</i>
/// for its segment later: the stored checksum is the plain one xor the segment's seal. So no record that an earlier use
/// of the file left behind is ever valid. Stateless.
/// </summary>
internal static class LogRecord
{
    public const int Alignment = 8;

    /// <summary>Largest payload. Every length with its headers thus fits into an int.</summary>
    public const int PayloadBytesMax = 1 << 30;

    /// <summary>
    /// The record that begins a batch: header, 8 bytes magic, u64 length of the batch's other records.
    /// </summary>
    public const int BatchBytes = RecordHeader.Bytes + 16;

    /// <summary>Offset of the magic in the record that begins a batch.</summary>
    public const int BatchMagicOffset = RecordHeader.Bytes;

    /// <summary>Identifies the beginning of a batch, also behind damage.</summary>
    public static ReadOnlySpan<byte> BatchMagic => "KahBatch"u8;

    /// <summary>
    /// One hard state: u64 term, u64 commit, u16 vote, u16 zero, u32 group (zero outside a checkpoint).
    /// </summary>
    public const int HardStateBytes = 24;

    /// <summary>One group in a checkpoint: its hard state, u64 last index, u64 term of the last entry.</summary>
    public const int CheckpointBytes = HardStateBytes + 16;

    /// <summary>A restart's payload: u64 term.</summary>
    public const int RestartBytes = 8;

    public static long Align(long bytes) => (bytes + (Alignment - 1)) & ~(long)(Alignment - 1);

    /// <summary>
    /// Begins a record of entries. Returns the room for them; <see cref="EndEntries"/> comes when it is filled.
    /// </summary>
    public static Span<byte> BeginEntries(LogBuffer target, GroupId group, LogIndex first, int count, int bytes)
    {
        RecordHeader header = new(RecordKind.Entries, group, first.Value, (uint)count, bytes);
        Span<byte> record = target.Take(checked((int)header.RecordBytes));
        header.Write(record);
        record[(RecordHeader.Bytes + bytes)..].Clear();
        return record.Slice(RecordHeader.Bytes, bytes);
    }

    /// <summary>The record that ends the buffer has its <paramref name="bytes"/> of entries.</summary>
    public static void EndEntries(LogBuffer target, int bytes) =>
        WriteChecksum(target.Last(RecordBytes(bytes))[..(RecordHeader.Bytes + bytes)]);

    /// <summary>Length of a record with a payload of this length.</summary>
    public static int RecordBytes(int payloadBytes) => checked((int)Align((long)RecordHeader.Bytes + payloadBytes));

    public static void WriteHardState(LogBuffer target, GroupId group, in HardState state)
    {
        RecordHeader header = new(RecordKind.HardState, group, 0, 0, HardStateBytes);
        Span<byte> record = target.Take(RecordHeader.Bytes + HardStateBytes);
        header.Write(record);
        WriteHardState(record[RecordHeader.Bytes..], default, state);
        WriteChecksum(record);
    }

    public static void WriteCheckpoint(LogBuffer target, IReadOnlyCollection<KeyValuePair<uint, GroupPositions>> groups)
    {
        RecordHeader header = new(
            RecordKind.Checkpoint, default, 0, (uint)groups.Count, groups.Count * CheckpointBytes);
        Span<byte> record = target.Take((int)header.RecordBytes);
        header.Write(record);
        Span<byte> rest = record[RecordHeader.Bytes..];
        foreach ((uint group, GroupPositions positions) in groups)
        {
            WriteHardState(rest, new GroupId(group), positions.HardState);
            BinaryPrimitives.WriteUInt64LittleEndian(rest[HardStateBytes..], positions.LastIndex.Value);
            BinaryPrimitives.WriteUInt64LittleEndian(rest[(HardStateBytes + 8)..], positions.LastTerm.Value);
            rest = rest[CheckpointBytes..];
        }

        InvariantException.Require(rest.IsEmpty, "a checkpoint has one place per group");
        WriteChecksum(record);
    }

    public static void WriteRestart(LogBuffer target, GroupId group, LogIndex index, Term term)
    {
        RecordHeader header = new(RecordKind.Restart, group, index.Value, 0, RestartBytes);
        Span<byte> record = target.Take(RecordHeader.Bytes + RestartBytes);
        header.Write(record);
        BinaryPrimitives.WriteUInt64LittleEndian(record[RecordHeader.Bytes..], term.Value);
        WriteChecksum(record);
    }

    /// <summary>Writes the record that begins a batch into its reserved space, sealed.</summary>
    public static void WriteBatch(Span<byte> target, ulong number, long bodyBytes, uint seal)
    {
        RecordHeader header = new(RecordKind.Batch, default, number, 0, BatchBytes - RecordHeader.Bytes);
        header.Write(target);
        BatchMagic.CopyTo(target[BatchMagicOffset..]);
        BinaryPrimitives.WriteUInt64LittleEndian(target[(BatchMagicOffset + 8)..], (ulong)bodyBytes);
        Span<byte> record = target[..BatchBytes];
        WriteChecksum(record);
        Seal(record, seal);
    }

    /// <summary>Reads the record that begins a batch. False when there is none with this seal.</summary>
    public static bool TryReadBatch(ReadOnlySpan<byte> source, uint seal, out ulong number, out long bodyBytes)
    {
        number = 0;
        bodyBytes = 0;
        if (source.Length < BatchBytes
            || !RecordHeader.TryRead(source, out RecordHeader header)
            || header.Kind != RecordKind.Batch
            || header.PayloadLength != BatchBytes - RecordHeader.Bytes
            || !source.Slice(BatchMagicOffset, BatchMagic.Length).SequenceEqual(BatchMagic)
            || !IsIntact(source[..BatchBytes], seal))
        {
            return false;
        }

        number = header.Number;
        bodyBytes = BinaryPrimitives.ReadInt64LittleEndian(source[(BatchMagicOffset + 8)..]);
        return bodyBytes >= 0;
    }

    /// <summary>Seals all records of a buffer for a segment.</summary>
    public static void SealAll(Span<byte> records, uint seal)
    {
        while (!records.IsEmpty)
        {
            int length = (int)Align(RecordHeader.Bytes + (long)BinaryPrimitives.ReadUInt32LittleEndian(records[4..]));
            InvariantException.Require(length <= records.Length, "sealed records are whole");
            Seal(records, seal);
            records = records[length..];
        }
    }

    /// <summary>Takes the next record off <paramref name="rest"/>. False when it is damaged, or at the end.</summary>
    public static bool TryTake(
        ref ReadOnlySpan<byte> rest, uint seal, out RecordHeader header, out ReadOnlySpan<byte> payload)
    {
        payload = default;
        header = default;
        if (rest.Length < RecordHeader.Bytes
            || !RecordHeader.TryRead(rest, out header)
            || header.RecordBytes > rest.Length)
        {
            return false;
        }

        ReadOnlySpan<byte> record = rest[..(RecordHeader.Bytes + header.PayloadLength)];
        if (!IsIntact(record, seal))
        {
            return false;
        }

        payload = record[RecordHeader.Bytes..];
        rest = rest[(int)header.RecordBytes..];
        return true;
    }

    /// <summary>Whether a record, without its padding, has the right checksum for a segment.</summary>
    public static bool IsIntact(ReadOnlySpan<byte> record, uint seal) =>
        BinaryPrimitives.ReadUInt32LittleEndian(record) == (Crc32C.Of(record[4..]) ^ seal);

    public static HardState ReadHardState(ReadOnlySpan<byte> source, out GroupId group)
    {
        group = new GroupId(BinaryPrimitives.ReadUInt32LittleEndian(source[20..]));
        return new HardState(
            new Term(BinaryPrimitives.ReadUInt64LittleEndian(source)),
            new NodeId(BinaryPrimitives.ReadUInt16LittleEndian(source[16..])),
            new LogIndex(BinaryPrimitives.ReadUInt64LittleEndian(source[8..])));
    }

    /// <summary>One group of a checkpoint's payload.</summary>
    public static GroupCheckpoint ReadCheckpoint(ReadOnlySpan<byte> payload, int number)
    {
        ReadOnlySpan<byte> source = payload.Slice(number * CheckpointBytes, CheckpointBytes);
        HardState state = ReadHardState(source, out GroupId group);
        return new GroupCheckpoint(
            group,
            state,
            new LogIndex(BinaryPrimitives.ReadUInt64LittleEndian(source[HardStateBytes..])),
            new Term(BinaryPrimitives.ReadUInt64LittleEndian(source[(HardStateBytes + 8)..])));
    }

    /// <summary>The term in a restart's payload.</summary>
    public static Term ReadRestart(ReadOnlySpan<byte> payload) => new(BinaryPrimitives.ReadUInt64LittleEndian(payload));

    /// <summary>Number of entries in the bytes, or -1 if they are not entries.</summary>
    public static int CountEntries(ReadOnlySpan<byte> entries)
    {
        int count = 0;
        while (EntryCodec.TryRead(ref entries, out _, out _, out _))
        {
            count++;
        }

        return entries.IsEmpty ? count : -1;
    }

    private static void WriteHardState(Span<byte> target, GroupId group, in HardState state)
    {
        BinaryPrimitives.WriteUInt64LittleEndian(target, state.Term.Value);
        BinaryPrimitives.WriteUInt64LittleEndian(target[8..], state.Commit.Value);
        BinaryPrimitives.WriteUInt16LittleEndian(target[16..], state.Vote.Value);
        BinaryPrimitives.WriteUInt16LittleEndian(target[18..], 0);
        BinaryPrimitives.WriteUInt32LittleEndian(target[20..], group.Value);
    }

    private static void WriteChecksum(Span<byte> record) =>
        BinaryPrimitives.WriteUInt32LittleEndian(record, Crc32C.Of(record[4..]));

    private static void Seal(Span<byte> record, uint seal) =>
        BinaryPrimitives.WriteUInt32LittleEndian(record, BinaryPrimitives.ReadUInt32LittleEndian(record) ^ seal);
}

/// <summary>CRC-32C (Castagnoli, RFC 3720 appendix B.4) by the processor's instruction. Stateless.</summary>
internal static class Crc32C
{
    /// <summary>The checksum of <paramref name="bytes"/>: all ones before and inverted after, as published.</summary>
    public static uint Of(ReadOnlySpan<byte> bytes)
    {
        uint crc = uint.MaxValue;
        if (BitConverter.IsLittleEndian)
        {
            ReadOnlySpan<ulong> words = MemoryMarshal.Cast<byte, ulong>(bytes);
            foreach (ulong word in words)
            {
                crc = BitOperations.Crc32C(crc, word);
            }

            bytes = bytes[(words.Length * sizeof(ulong))..];
        }

        while (bytes.Length >= sizeof(ulong))
        {
            crc = BitOperations.Crc32C(crc, BinaryPrimitives.ReadUInt64LittleEndian(bytes));
            bytes = bytes[sizeof(ulong)..];
        }

        foreach (byte one in bytes)
        {
            crc = BitOperations.Crc32C(crc, one);
        }

        return ~crc;
    }
}
