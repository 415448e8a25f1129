using System.Buffers.Binary;
using System.Diagnostics;
using Kahuna.Wire.Buffers;

namespace Kahuna.Wire.Frames;

/// <summary>
/// The items of a <see cref="FrameKind.Traces"/> frame (docs/wire-format.md): <c>u32 request number, u8 flags of W3C
/// Trace Context, three bytes 0, 16 bytes trace id, 8 bytes parent id</c>. Pure.
/// </summary>
internal static class TraceFrame
{
    /// <summary>Bytes of an item.</summary>
    public const int ItemBytes = 32;

    /// <summary>Items of a frame at most; further requests are not traced.</summary>
    public const int ItemsMax = 1_024;

    private const int TraceIdBytes = 16;

    /// <summary>Appends an item.</summary>
    public static void Append(ByteBuffer buffer, uint number, in ActivityContext context)
    {
        Span<byte> item = buffer.Take(ItemBytes);
        item.Clear();
        BinaryPrimitives.WriteUInt32LittleEndian(item, number);
        item[4] = (byte)context.TraceFlags;
        context.TraceId.CopyTo(item.Slice(8, TraceIdBytes));
        context.SpanId.CopyTo(item[(8 + TraceIdBytes)..]);
    }

    /// <summary>Reads an item; false: it names no trace that somebody records.</summary>
    public static bool TryRead(ReadOnlySpan<byte> item, out uint number, out ActivityContext context)
    {
        number = BinaryPrimitives.ReadUInt32LittleEndian(item);
        ReadOnlySpan<byte> trace = item.Slice(8, TraceIdBytes);
        ReadOnlySpan<byte> parent = item[(8 + TraceIdBytes)..];
        bool isRecorded = (item[4] & (byte)ActivityTraceFlags.Recorded) != 0;
        context = isRecorded && trace.ContainsAnyExcept((byte)0) && parent.ContainsAnyExcept((byte)0)
            ? new ActivityContext(
                ActivityTraceId.CreateFromBytes(trace),
                ActivitySpanId.CreateFromBytes(parent),
                ActivityTraceFlags.Recorded,
                traceState: null,
                isRemote: true)
            : default;
        return context != default;
    }
}
