using System.Buffers.Binary;
using Kahuna.Wire.Buffers;

namespace Kahuna.Wire.Outcomes;

/// <summary>
/// The value of the outcome of a <see cref="Commands.RangeRequest"/>, decoded in place.
/// <code>
/// offset  0  u8   flags: 1 there is more behind the last key looked at
///         1  u8   reserved, 0
///         2  u16  length of the last key looked at; 0 without more
///         4  u32  how many keys were counted
///         8  the last key looked at, then the entries
/// entry:  0  u16  length of the key
///         2  u8   flags: 1 the value is null
///         3  u8   reserved, 0
///         4  u32  length of the value; 0 where only keys are asked for
///         8  i64  revision
///        16  key, value
/// </code>
/// All numbers are little-endian. A page may be empty and not the last: a node looks at a bounded number of keys.
/// </summary>
internal ref struct RangePage
{
    public const int HeaderBytes = 8;
    private const byte MoreFlag = 1;
    private const byte NullFlag = 1;
    private const int EntryBytes = 16;

    private ReadOnlySpan<byte> _bytes;
    private int _next;

    /// <summary>There may be more keys behind <see cref="Last"/>.</summary>
    public bool HasMore { get; private set; }

    /// <summary>With more: the last key that was looked at; the next page begins behind it.</summary>
    public ReadOnlySpan<byte> Last { get; private set; }

    /// <summary>Keys on the page, or counted.</summary>
    public int Count { get; private set; }

    /// <summary>Where the first entry begins.</summary>
    public int EntriesOffset { get; private set; }

    /// <summary>The entry that was read last.</summary>
    public RangeEntry Entry { readonly get; private set; }

    /// <summary>Begins to read a page. False when it is malformed.</summary>
    public static bool TryRead(ReadOnlySpan<byte> source, out RangePage page)
    {
        page = default;
        if (source.Length < HeaderBytes)
        {
            return false;
        }

        int length = BinaryPrimitives.ReadUInt16LittleEndian(source[2..]);
        page._bytes = source;
        page._next = page.EntriesOffset = HeaderBytes + length;
        page.HasMore = (source[0] & MoreFlag) != 0;
        page.Count = (int)BinaryPrimitives.ReadUInt32LittleEndian(source[4..]);
        if (source.Length < page.EntriesOffset || page.Count < 0 || page.HasMore != (length > 0))
        {
            return false;
        }

        page.Last = source.Slice(HeaderBytes, length);
        int at = page.EntriesOffset;
        while (at < source.Length)
        {
            if (source.Length - at < EntryBytes || source.Length - at < BytesAt(source[at..]))
            {
                return false;
            }

            at += (int)BytesAt(source[at..]);
        }

        return true;
    }

    /// <summary>Reads the next entry. False at the end.</summary>
    public bool TryNext()
    {
        if (_next >= _bytes.Length)
        {
            return false;
        }

        Entry = EntryAt(_bytes, ref _next);
        return true;
    }

    /// <summary>The entry at a place of a page that was read before; the place moves to the next one.</summary>
    public static RangeEntry EntryAt(ReadOnlySpan<byte> page, scoped ref int offset)
    {
        ReadOnlySpan<byte> entry = page[offset..];
        int keyLength = BinaryPrimitives.ReadUInt16LittleEndian(entry);
        int bytes = (int)BytesAt(entry);
        offset += bytes;
        return new RangeEntry(
            entry.Slice(EntryBytes, keyLength),
            entry[(EntryBytes + keyLength)..bytes],
            (entry[2] & NullFlag) != 0,
            BinaryPrimitives.ReadInt64LittleEndian(entry[8..]));
    }

    private static long BytesAt(ReadOnlySpan<byte> entry) =>
        EntryBytes
            + BinaryPrimitives.ReadUInt16LittleEndian(entry)
            + (long)BinaryPrimitives.ReadUInt32LittleEndian(entry[4..]);

    /// <summary>Appends an entry to the entries of a page.</summary>
    public static void Append(
        ByteBuffer entries, ReadOnlySpan<byte> key, ReadOnlySpan<byte> value, bool isNull, long revision)
    {
        Span<byte> span = entries.Take(EntryBytes);
        BinaryPrimitives.WriteUInt16LittleEndian(span, checked((ushort)key.Length));
        span[2] = isNull ? NullFlag : (byte)0;
        span[3] = 0;
        BinaryPrimitives.WriteUInt32LittleEndian(span[4..], (uint)value.Length);
        BinaryPrimitives.WriteInt64LittleEndian(span[8..], revision);
        entries.Append(key);
        entries.Append(value);
    }

    /// <summary>Writes what comes before the entries.</summary>
    /// <param name="target">Where to.</param>
    /// <param name="last">The last key that was looked at; empty when there is no more.</param>
    /// <param name="count">Keys on the page, or counted.</param>
    public static void WriteHeader(ByteBuffer target, ReadOnlySpan<byte> last, int count)
    {
        Span<byte> span = target.Take(HeaderBytes);
        span[0] = last.IsEmpty ? (byte)0 : MoreFlag;
        span[1] = 0;
        BinaryPrimitives.WriteUInt16LittleEndian(span[2..], checked((ushort)last.Length));
        BinaryPrimitives.WriteUInt32LittleEndian(span[4..], (uint)count);
        target.Append(last);
    }
}

/// <summary>One key of a <see cref="RangePage"/>; its spans point into the page.</summary>
internal readonly ref struct RangeEntry(
    ReadOnlySpan<byte> key, ReadOnlySpan<byte> value, bool isNull, long revision)
{
    public ReadOnlySpan<byte> Key { get; } = key;

    /// <summary>The value; empty where only keys are asked for.</summary>
    public ReadOnlySpan<byte> Value { get; } = value;

    public bool IsNull { get; } = isNull;

    public long Revision { get; } = revision;
}
