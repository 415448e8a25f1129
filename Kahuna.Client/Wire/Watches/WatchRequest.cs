using System.Buffers.Binary;
using Kahuna.Wire.Buffers;

namespace Kahuna.Wire.Watches;

/// <summary>
/// One item of a frame of watch requests: begins or ends a watch of a stream (docs/wire-format.md). Its spans point
/// into the buffer it was read from.
/// <code>
/// offset  0  u32  length of what follows
///         4  u8   operation
///         5  u8   durability
///         6  u8   scope
///         7  u8   flags
///         8  u32  id of the watch; not 0
///        12  u16  number of points
///        14  u16  length of the name
///        16  points of 24 bytes, then the name
/// </code>
/// All numbers are little-endian. A request that ends a watch has only its id; the other fields are 0.
/// </summary>
internal ref struct WatchRequest
{
    /// <summary>Bytes before the points.</summary>
    public const int HeaderBytes = 16;

    public WatchOperation Operation;
    public Durability Durability;
    public WatchScope Scope;
    public WatchFlags Flags;
    public uint Id;

    /// <summary>
    /// Where to begin, for each group that is named: <see cref="ChangePoint"/>s. In groups that are not named the watch
    /// begins with what the node applies next.
    /// </summary>
    public ReadOnlySpan<byte> Points;

    public ReadOnlySpan<byte> Name;

    /// <summary>Number of points.</summary>
    public readonly int PointCount => Points.Length / ChangePoint.Bytes;

    /// <summary>A point by its place.</summary>
    public readonly ChangePoint Point(int i) => ChangePoint.Read(Points[(i * ChangePoint.Bytes)..]);

    /// <summary>
    /// Reads the item at the front of <paramref name="source"/> and advances it. False when malformed: lengths, unknown
    /// values, id 0. The meaning of the name is not checked.
    /// </summary>
    public static bool TryRead(ref ReadOnlySpan<byte> source, out WatchRequest request)
    {
        request = default;
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
        request.Operation = (WatchOperation)item[4];
        request.Durability = (Durability)item[5];
        request.Scope = (WatchScope)item[6];
        request.Flags = (WatchFlags)item[7];
        request.Id = BinaryPrimitives.ReadUInt32LittleEndian(item[8..]);
        int points = BinaryPrimitives.ReadUInt16LittleEndian(item[12..]) * ChangePoint.Bytes;
        int name = BinaryPrimitives.ReadUInt16LittleEndian(item[14..]);
        if (request.Id == 0 || HeaderBytes + points + name != item.Length)
        {
            return false;
        }

        request.Points = item.Slice(HeaderBytes, points);
        request.Name = item[(HeaderBytes + points)..];
        return request.Operation switch
        {
            WatchOperation.Begin => request.Durability is Durability.Persistent or Durability.Ephemeral
                && request.Scope is WatchScope.Key or WatchScope.Bucket or WatchScope.Prefix
                && (request.Flags & ~WatchFlags.WithValues) == 0,
            WatchOperation.End => item.Length == HeaderBytes && item[5] == 0 && item[6] == 0 && item[7] == 0,
            _ => false,
        };
    }

    /// <summary>Appends the item.</summary>
    public readonly void Write(ByteBuffer target)
    {
        Span<byte> span = target.Take(HeaderBytes + Points.Length + Name.Length);
        BinaryPrimitives.WriteUInt32LittleEndian(span, (uint)(span.Length - 4));
        span[4] = (byte)Operation;
        span[5] = (byte)Durability;
        span[6] = (byte)Scope;
        span[7] = (byte)Flags;
        BinaryPrimitives.WriteUInt32LittleEndian(span[8..], Id);
        BinaryPrimitives.WriteUInt16LittleEndian(span[12..], checked((ushort)PointCount));
        BinaryPrimitives.WriteUInt16LittleEndian(span[14..], checked((ushort)Name.Length));
        Points.CopyTo(span[HeaderBytes..]);
        Name.CopyTo(span[(HeaderBytes + Points.Length)..]);
    }
}

/// <summary>What a watch request does. Values are part of the wire format.</summary>
internal enum WatchOperation : byte
{
    /// <summary>Begins a watch.</summary>
    Begin = 1,

    /// <summary>Ends a watch.</summary>
    End = 2,
}

/// <summary>Options of a watch. Values are part of the wire format.</summary>
[Flags]
internal enum WatchFlags : byte
{
    None = 0,

    /// <summary>Changes carry the written values.</summary>
    WithValues = 1 << 0,
}
