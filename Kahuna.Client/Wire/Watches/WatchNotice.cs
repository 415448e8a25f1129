using System.Buffers.Binary;
using Kahuna.Wire.Buffers;

namespace Kahuna.Wire.Watches;

/// <summary>
/// One item of a frame of notices: what a node tells of a watch, or of all watches of the stream in one group
/// (docs/wire-format.md). Its span points into the buffer it was read from.
/// <code>
/// offset  0  u32  length of what follows
///         4  u8   code
///         5  three bytes, 0
///         8  u32  id of the watch; 0: all of the stream
///        12  u32  status of a refusal, else 0
///        16  point of 24 bytes, or zeros
///        40  text of a refusal, in UTF-8
/// </code>
/// All numbers are little-endian.
/// </summary>
internal ref struct WatchNotice
{
    /// <summary>Bytes before the text.</summary>
    public const int HeaderBytes = 40;

    public WatchNoticeCode Code;
    public uint Watch;
    public uint Status;
    public ChangePoint Point;
    public ReadOnlySpan<byte> Text;

    /// <summary>Reads the item at the front and advances. False when malformed.</summary>
    public static bool TryRead(ref ReadOnlySpan<byte> source, out WatchNotice notice)
    {
        notice = default;
        if (source.Length < HeaderBytes
            || BinaryPrimitives.ReadUInt32LittleEndian(source) is var length
            && (length > (uint)(source.Length - 4) || length < HeaderBytes - 4))
        {
            return false;
        }

        ReadOnlySpan<byte> item = source[..(4 + (int)length)];
        source = source[item.Length..];
        notice.Code = (WatchNoticeCode)item[4];
        notice.Watch = BinaryPrimitives.ReadUInt32LittleEndian(item[8..]);
        notice.Status = BinaryPrimitives.ReadUInt32LittleEndian(item[12..]);
        notice.Point = ChangePoint.Read(item[16..]);
        notice.Text = item[HeaderBytes..];
        return notice.Code is >= WatchNoticeCode.Begun and <= WatchNoticeCode.PermissionDenied;
    }

    /// <summary>Appends the item.</summary>
    public readonly void Write(ByteBuffer target)
    {
        Span<byte> span = target.Take(HeaderBytes + Text.Length);
        span.Clear();
        BinaryPrimitives.WriteUInt32LittleEndian(span, (uint)(span.Length - 4));
        span[4] = (byte)Code;
        BinaryPrimitives.WriteUInt32LittleEndian(span[8..], Watch);
        BinaryPrimitives.WriteUInt32LittleEndian(span[12..], Status);
        Point.Write(span[16..]);
        Text.CopyTo(span[HeaderBytes..]);
    }
}

/// <summary>What a notice says. Values are part of the wire format.</summary>
internal enum WatchNoticeCode : byte
{
    /// <summary>The watch has begun: what concerns it follows.</summary>
    Begun = 1,

    /// <summary>The watch was refused, for the reason in status and text.</summary>
    Refused = 2,

    /// <summary>
    /// This node has not all changes behind the point where the stream, or the watch, was. It goes on behind the point
    /// of the notice: what lies between is missing.
    /// </summary>
    Compacted = 3,

    /// <summary>
    /// An epoch of the point's ephemeral group has begun, empty: all keys of the one before are gone. Changes of the
    /// new epoch follow.
    /// </summary>
    EpochBegan = 4,

    /// <summary>The stream is read so slowly that changes may soon be missing.</summary>
    Lagging = 5,

    /// <summary>
    /// The user lacks the right to the watch, or has it no longer; the text names it. The watch has ended, and its id
    /// is free. The status is PermissionDenied.
    /// </summary>
    PermissionDenied = 6,
}

/// <summary>
/// One item of a frame of progress, of 32 bytes: every change up to the point was sent to the watches of the stream
/// that have begun; then u32 how long ago, in ms, the node was last sure to have had all that was committed, and u32 0.
/// </summary>
/// <param name="Point">Of one group.</param>
/// <param name="BehindMs">Age of the node's view of the group, in ms; <see cref="uint.MaxValue"/>: unknown.</param>
internal readonly record struct WatchProgress(ChangePoint Point, uint BehindMs)
{
    /// <summary>Encoded length.</summary>
    public const int Bytes = ChangePoint.Bytes + 8;

    /// <summary>Reads the item at the front and advances. False when there is not enough.</summary>
    public static bool TryRead(ref ReadOnlySpan<byte> source, out WatchProgress progress)
    {
        progress = default;
        if (source.Length < Bytes)
        {
            return false;
        }

        progress = new WatchProgress(
            ChangePoint.Read(source), BinaryPrimitives.ReadUInt32LittleEndian(source[ChangePoint.Bytes..]));
        source = source[Bytes..];
        return true;
    }

    /// <summary>Appends the item.</summary>
    public void Write(ByteBuffer target)
    {
        Span<byte> span = target.Take(Bytes);
        span.Clear();
        Point.Write(span);
        BinaryPrimitives.WriteUInt32LittleEndian(span[ChangePoint.Bytes..], BehindMs);
    }
}
