using System.Buffers.Binary;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Storage;

/// <summary>
/// Writing and checking log records (docs/log-format.md). A record is written into a buffer with its plain checksum and
/// <i>sealed</i> for its segment later: the stored checksum is the plain one xor the segment's seal, so that no record that
/// an earlier use of the file left behind is ever valid. Stateless.
/// </summary>
internal static class LogRecord
{
    public const int Alignment = 8;

    /// <summary>Largest payload; keeps every length inside an int with room for headers.</summary>
    public const int PayloadBytesMax = 1 << 30;

    /// <summary>The record that begins a batch: header, 8 bytes magic, u64 length of the batch's other records.</summary>
    public const int BatchBytes = RecordHeader.Bytes + 16;

    /// <summary>Where the magic lies in the record that begins a batch.</summary>
    public const int BatchMagicOffset = RecordHeader.Bytes;

    /// <summary>Searched for when looking for a batch behind damage.</summary>
    public static ReadOnlySpan<byte> BatchMagic => "KahBatch"u8;

    /// <summary>One hard state: u64 term, u64 commit, u16 vote, u16 zero, u32 group (zero outside a checkpoint).</summary>
    public const int HardStateBytes = 24;

    /// <summary>One group in a checkpoint: its hard state, u64 last index, u64 term of the last entry.</summary>
    public const int CheckpointBytes = HardStateBytes + 16;

    /// <summary>A restart's payload: u64 term.</summary>
    public const int RestartBytes = 8;

    public static long Align(long bytes) => (bytes + (Alignment - 1)) & ~(long)(Alignment - 1);

    public static void WriteEntries(LogBuffer target, GroupId group, LogIndex first, int count, ReadOnlySpan<byte> entries)
    {
        RecordHeader header = new(RecordKind.Entries, group, first.Value, (uint)count, entries.Length);
        Span<byte> record = target.Take(checked((int)header.RecordBytes));
        header.Write(record);
        entries.CopyTo(record[RecordHeader.Bytes..]);
        record[(RecordHeader.Bytes + entries.Length)..].Clear();
        WriteChecksum(record[..(RecordHeader.Bytes + entries.Length)]);
    }

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
        RecordHeader header = new(RecordKind.Checkpoint, default, 0, (uint)groups.Count, groups.Count * CheckpointBytes);
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

    /// <summary>Writes the record that begins a batch into the room kept for it, sealed.</summary>
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

    /// <summary>Reads the record that begins a batch; false when there is none for a segment with this seal.</summary>
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

    /// <summary>Seals all records of a buffer, one after the other, for a segment.</summary>
    public static void SealAll(Span<byte> records, uint seal)
    {
        while (!records.IsEmpty)
        {
            int length = (int)Align(RecordHeader.Bytes + (long)BinaryPrimitives.ReadUInt32LittleEndian(records[4..]));
            Seal(records, seal);
            records = records[length..];
        }
    }

    /// <summary>Takes the next record off <paramref name="rest"/>; false when it is damaged (or at the end).</summary>
    public static bool TryTake(ref ReadOnlySpan<byte> rest, uint seal, out RecordHeader header, out ReadOnlySpan<byte> payload)
    {
        payload = default;
        header = default;
        if (rest.Length < RecordHeader.Bytes || !RecordHeader.TryRead(rest, out header) || header.RecordBytes > rest.Length)
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

    /// <summary>Whether a record without its padding carries the right checksum for a segment.</summary>
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

    /// <summary>Number of entries in the bytes, or -1 when they are something else.</summary>
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
