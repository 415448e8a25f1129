using System.Buffers.Binary;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// One key with everything that is kept of it, as views write it and stores and snapshots hold it: <c>u16 key length,
/// u8 flags, u8 zero, u32 row, i64 revision, i64 deadline in ms (-1: none), u32 value length, u16 count of replaced
/// revisions, u16 account, key, value</c>, then each replaced revision, the oldest first: <c>i64 revision, i64 replaced
/// at in ms, i64 number, u8 flags, u32 value length, value</c>. A row that stands for nothing has a record without key,
/// value and revisions. Little endian. Stateless.
/// </summary>
internal static class KeyRecord
{
    public const int HeaderBytes = 32;
    public const int RevisionHeaderBytes = 29;

    private const long NoDeadline = -1;

    /// <summary>The key's name in a record, which must be whole.</summary>
    public static ReadOnlySpan<byte> Key(ReadOnlySpan<byte> record) =>
        record.Slice(HeaderBytes, BinaryPrimitives.ReadUInt16LittleEndian(record));

    /// <summary>Number of the key's row, from 1 on, in a record that is whole.</summary>
    public static uint Row(ReadOnlySpan<byte> record) => BinaryPrimitives.ReadUInt32LittleEndian(record[4..]);

    /// <summary>Appends the record of a row.</summary>
    public static void Write(KeyStore store, Row key, ByteBuffer target)
    {
        ref readonly KeyEntry entry = ref store.Keys[key];
        Span<byte> header = target.Take(HeaderBytes);
        BinaryPrimitives.WriteUInt16LittleEndian(header, entry.KeyLength);
        header[2] = (byte)entry.Flags;
        header[3] = 0;
        BinaryPrimitives.WriteInt32LittleEndian(header[4..], key.Value);
        BinaryPrimitives.WriteInt64LittleEndian(header[8..], entry.Revision.Value);
        BinaryPrimitives.WriteInt64LittleEndian(
            header[16..], entry.ExpirySlot == 0 ? NoDeadline : store.DeadlineOf(in entry).Ms);
        BinaryPrimitives.WriteInt32LittleEndian(header[24..], entry.ValueLength);
        BinaryPrimitives.WriteUInt16LittleEndian(header[28..], entry.HistoryCount);
        BinaryPrimitives.WriteUInt16LittleEndian(header[30..], entry.Account);
        if (entry.IsFree)
        {
            return;
        }

        target.Append(store.Keys.Key(in entry));
        target.Append(store.Keys.Value(in entry));
        int index = entry.HistoryCount == 0 ? 0 : store.History[entry.NewestHistory].Newer;
        for (int left = entry.HistoryCount; left > 0; left--)
        {
            ref readonly HistoryRecord record = ref store.History[index];
            Span<byte> revision = target.Take(RevisionHeaderBytes);
            BinaryPrimitives.WriteInt64LittleEndian(revision, record.Revision.Value);
            BinaryPrimitives.WriteInt64LittleEndian(revision[8..], record.ReplacedAt.Ms);
            BinaryPrimitives.WriteInt64LittleEndian(revision[16..], record.Number);
            revision[24] = (byte)record.Flags;
            BinaryPrimitives.WriteInt32LittleEndian(revision[25..], record.ValueLength);
            target.Append(store.History.Value(in record));
            index = record.Newer;
        }

        InvariantException.Require(
            entry.HistoryCount == 0 || index == store.History[entry.NewestHistory].Newer,
            "a key's history is a ring of as many records as it counts");
    }

    /// <summary>
    /// Adds the record's part of its state's digest to a sum. False when the bytes are no record; the sum is of no use
    /// then.
    /// </summary>
    public static bool TryAddDigest(ReadOnlySpan<byte> record, long firstHistoryNumber, ref ulong digest)
    {
        if (!KeyRecordReader.TryBegin(record, out KeyRecordReader reader))
        {
            return false;
        }

        if ((reader.Flags & KeyEntryFlags.Free) != 0)
        {
            return reader.IsWhole;
        }

        digest = unchecked(digest + StateDigest.OfRow(reader.Key, reader.Value, reader.Revision, reader.Flags));
        if (reader.Deadline is { } deadline)
        {
            digest = unchecked(digest + StateDigest.OfDeadline(reader.Row, deadline));
        }

        digest = unchecked(digest + StateDigest.OfAccount(reader.Row, reader.Account));

        while (reader.TryNext())
        {
            if (reader.Number >= firstHistoryNumber)
            {
                HistoryRecord replaced = new()
                {
                    Digest = StateDigest.OfRevision(reader.Key, reader.Value, reader.Revision, reader.Flags),
                    ReplacedAt = reader.ReplacedAt,
                    Number = reader.Number,
                };
                digest = unchecked(digest + StateDigest.OfRecord(in replaced));
            }
        }

        return reader.IsWhole;
    }
}
