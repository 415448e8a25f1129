using System.Buffers.Binary;
using Kahuna.Wire.Buffers;

namespace Kahuna.Wire.Watches;

/// <summary>
/// One item of a frame of changes: a change and the watches of the stream that it concerns (docs/wire-format.md). Its
/// spans point into the buffer it was read from.
/// <code>
/// frame:     u32 group, u64 epoch, then the items
/// offset  0  u32  length of what follows
///         4  u8   kind
///         5  u8   flags
///         6  u16  length of the key
///         8  u32  length of the value
///        12  u32  number of the change in its entry
///        16  u32  transaction: number of its first change + 1; 0 for a change that stands alone
///        20  u32  number of watches
///        24  u64  index of the entry
///        32  i64  revision
///        40  ids of the watches, u32 each, then key and value
/// </code>
/// All numbers are little-endian.
/// </summary>
internal ref struct WatchedChange
{
    /// <summary>Bytes before the ids.</summary>
    public const int HeaderBytes = 40;

    /// <summary>Group and epoch, before the items of a frame.</summary>
    public const int FrameHeaderBytes = 12;

    public WatchedChangeKind Kind;
    public WatchedChangeFlags Flags;
    public uint N;
    public uint Transaction;
    public ulong Index;
    public long Revision;

    /// <summary>The ids, encoded.</summary>
    public ReadOnlySpan<byte> Watches;

    public ReadOnlySpan<byte> Key;
    public ReadOnlySpan<byte> Value;

    /// <summary>Number of watches.</summary>
    public readonly int WatchCount => Watches.Length / sizeof(uint);

    /// <summary>The id of a watch by its place.</summary>
    public readonly uint Watch(int i) => BinaryPrimitives.ReadUInt32LittleEndian(Watches[(i * sizeof(uint))..]);

    /// <summary>Reads the item at the front and advances. False when malformed.</summary>
    public static bool TryRead(ref ReadOnlySpan<byte> source, out WatchedChange change)
    {
        change = default;
        if (source.Length < HeaderBytes
            || BinaryPrimitives.ReadUInt32LittleEndian(source) is var length && length > (uint)(source.Length - 4))
        {
            return false;
        }

        ReadOnlySpan<byte> item = source[..(4 + (int)length)];
        if (item.Length < HeaderBytes)
        {
            return false;
        }

        source = source[item.Length..];
        change.Kind = (WatchedChangeKind)item[4];
        change.Flags = (WatchedChangeFlags)item[5];
        int key = BinaryPrimitives.ReadUInt16LittleEndian(item[6..]);
        long value = BinaryPrimitives.ReadUInt32LittleEndian(item[8..]);
        change.N = BinaryPrimitives.ReadUInt32LittleEndian(item[12..]);
        change.Transaction = BinaryPrimitives.ReadUInt32LittleEndian(item[16..]);
        long watches = (long)BinaryPrimitives.ReadUInt32LittleEndian(item[20..]) * sizeof(uint);
        change.Index = BinaryPrimitives.ReadUInt64LittleEndian(item[24..]);
        change.Revision = BinaryPrimitives.ReadInt64LittleEndian(item[32..]);
        if (HeaderBytes + watches + key + value != item.Length
            || change.Kind is < WatchedChangeKind.Set or > WatchedChangeKind.Evicted)
        {
            return false;
        }

        change.Watches = item.Slice(HeaderBytes, (int)watches);
        change.Key = item.Slice(HeaderBytes + (int)watches, key);
        change.Value = item[(HeaderBytes + (int)watches + key)..];
        return true;
    }

    /// <summary>Appends group and epoch, behind a frame's header.</summary>
    public static void WriteFrameHeader(ByteBuffer target, uint group, ulong epoch)
    {
        Span<byte> span = target.Take(FrameHeaderBytes);
        BinaryPrimitives.WriteUInt32LittleEndian(span, group);
        BinaryPrimitives.WriteUInt64LittleEndian(span[4..], epoch);
    }

    /// <summary>Reads group and epoch at the front and advances. False when there is not enough.</summary>
    public static bool TryReadFrameHeader(ref ReadOnlySpan<byte> source, out uint group, out ulong epoch)
    {
        (group, epoch) = (0, 0);
        if (source.Length < FrameHeaderBytes)
        {
            return false;
        }

        group = BinaryPrimitives.ReadUInt32LittleEndian(source);
        epoch = BinaryPrimitives.ReadUInt64LittleEndian(source[4..]);
        source = source[FrameHeaderBytes..];
        return true;
    }

    /// <summary>Appends an id to those of an item.</summary>
    public static void AppendWatch(ByteBuffer ids, uint watch) =>
        BinaryPrimitives.WriteUInt32LittleEndian(ids.Take(sizeof(uint)), watch);

    /// <summary>Appends the item.</summary>
    public readonly void Write(ByteBuffer target)
    {
        Span<byte> span = target.Take(HeaderBytes + Watches.Length + Key.Length + Value.Length);
        BinaryPrimitives.WriteUInt32LittleEndian(span, (uint)(span.Length - 4));
        span[4] = (byte)Kind;
        span[5] = (byte)Flags;
        BinaryPrimitives.WriteUInt16LittleEndian(span[6..], checked((ushort)Key.Length));
        BinaryPrimitives.WriteUInt32LittleEndian(span[8..], (uint)Value.Length);
        BinaryPrimitives.WriteUInt32LittleEndian(span[12..], N);
        BinaryPrimitives.WriteUInt32LittleEndian(span[16..], Transaction);
        BinaryPrimitives.WriteUInt32LittleEndian(span[20..], (uint)WatchCount);
        BinaryPrimitives.WriteUInt64LittleEndian(span[24..], Index);
        BinaryPrimitives.WriteInt64LittleEndian(span[32..], Revision);
        Watches.CopyTo(span[HeaderBytes..]);
        Key.CopyTo(span[(HeaderBytes + Watches.Length)..]);
        Value.CopyTo(span[(HeaderBytes + Watches.Length + Key.Length)..]);
    }
}

/// <summary>What happened to a watched key. Values are part of the wire format.</summary>
internal enum WatchedChangeKind : byte
{
    /// <summary>A value was written.</summary>
    Set = 1,

    /// <summary>The key was deleted.</summary>
    Deleted = 2,

    /// <summary>The key's time to live has passed.</summary>
    Expired = 3,

    /// <summary>The key went because there was no room.</summary>
    Evicted = 4,
}

/// <summary>More about a watched change. Values are part of the wire format.</summary>
[Flags]
internal enum WatchedChangeFlags : byte
{
    None = 0,

    /// <summary>The written value is null, not empty.</summary>
    NullValue = 1 << 0,

    /// <summary>The revision before this one could still be read when the change was made.</summary>
    PreviousKept = 1 << 1,

    /// <summary>There is a value and it is not sent, because no watch of the item wants it.</summary>
    ValueLeftOut = 1 << 2,

    /// <summary>
    /// The item repeats the one before it for more watches; key and value are sent again.
    /// </summary>
    MoreWatches = 1 << 3,
}
