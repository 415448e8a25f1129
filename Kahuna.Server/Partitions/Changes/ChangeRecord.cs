using System.Buffers.Binary;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Watches;

namespace Kahuna.Server.Partitions.Changes;

/// <summary>
/// One change as a <see cref="ChangeLog"/> keeps it. Only in memory of one process; its spans point into the buffer it
/// was read from.
/// </summary>
internal readonly ref struct ChangeRecord
{
    private const int HeaderBytes = 40;
    private const byte NullValue = 1;
    private const byte PreviousKept = 2;

    private readonly ReadOnlySpan<byte> _bytes;

    private ChangeRecord(ReadOnlySpan<byte> bytes) => _bytes = bytes;

    /// <summary>What happened.</summary>
    public ChangeKind Kind => (ChangeKind)_bytes[4];

    /// <summary>The written value is null, not empty.</summary>
    public bool IsNull => (_bytes[5] & NullValue) != 0;

    /// <inheritdoc cref="Change.IsPreviousKept"/>
    public bool IsPreviousKept => (_bytes[5] & PreviousKept) != 0;

    /// <summary>The number of the change in its entry.</summary>
    public uint N => BinaryPrimitives.ReadUInt32LittleEndian(_bytes[12..]);

    /// <inheritdoc cref="Change.Transaction"/>
    public uint Transaction => BinaryPrimitives.ReadUInt32LittleEndian(_bytes[16..]);

    /// <summary>The entry.</summary>
    public ulong Index => BinaryPrimitives.ReadUInt64LittleEndian(_bytes[24..]);

    /// <inheritdoc cref="Change.Revision"/>
    public long Revision => BinaryPrimitives.ReadInt64LittleEndian(_bytes[32..]);

    /// <summary>The key.</summary>
    public ReadOnlySpan<byte> Key => _bytes.Slice(HeaderBytes, KeyLength(_bytes));

    /// <summary>The written value; empty for other kinds.</summary>
    public ReadOnlySpan<byte> Value => _bytes.Slice(HeaderBytes + KeyLength(_bytes), ValueLength(_bytes));

    /// <summary>Takes the record at the front of what a read has copied. False at the end.</summary>
    public static bool TryTake(ref ReadOnlySpan<byte> source, out ChangeRecord record)
    {
        record = default;
        if (!TryLength(source, out int length))
        {
            return false;
        }

        record = new ChangeRecord(source[..length]);
        source = source[length..];
        return true;
    }

    /// <summary>Length of a record.</summary>
    public static int LengthOf(int keyLength, int valueLength) => checked(HeaderBytes + keyLength + valueLength);

    /// <summary>Writes a record of <see cref="LengthOf"/> bytes.</summary>
    public static void Write(Span<byte> target, int n, ulong index, scoped in Change change)
    {
        BinaryPrimitives.WriteUInt32LittleEndian(target, (uint)target.Length);
        target[4] = (byte)change.Kind;
        target[5] = (byte)((change.IsNull ? NullValue : 0) | (change.IsPreviousKept ? PreviousKept : 0));
        BinaryPrimitives.WriteUInt16LittleEndian(target[6..], checked((ushort)change.Key.Length));
        BinaryPrimitives.WriteUInt32LittleEndian(target[8..], (uint)change.Value.Length);
        BinaryPrimitives.WriteUInt32LittleEndian(target[12..], (uint)n);
        BinaryPrimitives.WriteUInt32LittleEndian(target[16..], (uint)change.Transaction);
        BinaryPrimitives.WriteUInt32LittleEndian(target[20..], 0);
        BinaryPrimitives.WriteUInt64LittleEndian(target[24..], index);
        BinaryPrimitives.WriteInt64LittleEndian(target[32..], change.Revision.Value);
        change.Key.CopyTo(target[HeaderBytes..]);
        change.Value.CopyTo(target[(HeaderBytes + change.Key.Length)..]);
    }

    /// <summary>
    /// The length of the record at the front. False when there is none, or only bytes that are being overwritten.
    /// </summary>
    public static bool TryLength(ReadOnlySpan<byte> source, out int length)
    {
        length = 0;
        if (source.Length < HeaderBytes)
        {
            return false;
        }

        uint written = BinaryPrimitives.ReadUInt32LittleEndian(source);
        if (written > (uint)source.Length
            || written != HeaderBytes + (long)KeyLength(source) + (uint)ValueLength(source))
        {
            return false;
        }

        length = (int)written;
        return true;
    }

    /// <summary>Where the record at the front stands.</summary>
    public static ChangePoint PointOf(ReadOnlySpan<byte> source, uint group, ulong epoch) =>
        new(
            group,
            epoch,
            BinaryPrimitives.ReadUInt64LittleEndian(source[24..]),
            BinaryPrimitives.ReadUInt32LittleEndian(source[12..]));

    private static int KeyLength(ReadOnlySpan<byte> source) => BinaryPrimitives.ReadUInt16LittleEndian(source[6..]);

    private static int ValueLength(ReadOnlySpan<byte> source) => BinaryPrimitives.ReadInt32LittleEndian(source[8..]);
}
