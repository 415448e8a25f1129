using System.Buffers.Binary;
using Kahuna.Client.Wire.Buffers;

namespace Kahuna.Server.Partitions;

/// <summary>
/// Payload of a log entry that carries commands: <c>i64 cluster time in ms, u32 count, then count × (u32 length, command)</c>.
/// Stateless.
/// </summary>
internal static class CommandEntry
{
    public const int HeaderBytes = 12;
    public const int ItemHeaderBytes = 4;

    public static void Begin(ByteBuffer payload) => payload.Take(HeaderBytes);

    public static void Add(ByteBuffer payload, ReadOnlySpan<byte> command)
    {
        Span<byte> span = payload.Take(ItemHeaderBytes + command.Length);
        BinaryPrimitives.WriteUInt32LittleEndian(span, (uint)command.Length);
        command.CopyTo(span[ItemHeaderBytes..]);
    }

    public static void End(ByteBuffer payload, int at, long timeMs, int count)
    {
        Span<byte> span = payload.Array.AsSpan(at);
        BinaryPrimitives.WriteInt64LittleEndian(span, timeMs);
        BinaryPrimitives.WriteUInt32LittleEndian(span[8..], (uint)count);
    }

    public static bool TryReadHeader(ReadOnlySpan<byte> payload, out long timeMs, out int count, out ReadOnlySpan<byte> items)
    {
        timeMs = 0;
        count = 0;
        items = default;
        if (payload.Length < HeaderBytes)
        {
            return false;
        }

        timeMs = BinaryPrimitives.ReadInt64LittleEndian(payload);
        count = BinaryPrimitives.ReadInt32LittleEndian(payload[8..]);
        items = payload[HeaderBytes..];
        return count >= 0;
    }

    public static bool TryReadItem(ref ReadOnlySpan<byte> items, out ReadOnlySpan<byte> command)
    {
        command = default;
        if (items.Length < ItemHeaderBytes)
        {
            return false;
        }

        uint length = BinaryPrimitives.ReadUInt32LittleEndian(items);
        if (length > (uint)(items.Length - ItemHeaderBytes))
        {
            return false;
        }

        command = items.Slice(ItemHeaderBytes, (int)length);
        items = items[(ItemHeaderBytes + (int)length)..];
        return true;
    }
}
