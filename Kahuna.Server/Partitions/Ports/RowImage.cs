using System.Buffers.Binary;
using Kahuna.Server.State.Rows;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>
/// One record of a state: a key with everything that is kept of it. Valid as long as the bytes it was read from.
/// </summary>
internal readonly ref struct RowImage(ReadOnlySpan<byte> bytes)
{
    /// <summary>The whole record, without its length.</summary>
    public ReadOnlySpan<byte> Bytes { get; } = bytes;

    /// <summary>
    /// Number of the key's row in its state, by which stores tell records apart: a row may stand for another key later;
    /// the record must be whole.
    /// </summary>
    public uint Row => KeyRecord.Row(Bytes);

    /// <summary>
    /// Takes the next record off a row of records, each of which is preceded by its length (u32). False when the rest
    /// is no record.
    /// </summary>
    public static bool TryTake(ref ReadOnlySpan<byte> records, out RowImage record)
    {
        record = default;
        if (records.Length < sizeof(int))
        {
            return false;
        }

        int length = BinaryPrimitives.ReadInt32LittleEndian(records);
        if (length < KeyRecord.HeaderBytes || length > records.Length - sizeof(int))
        {
            return false;
        }

        record = new RowImage(records.Slice(sizeof(int), length));
        records = records[(sizeof(int) + length)..];
        return true;
    }
}
