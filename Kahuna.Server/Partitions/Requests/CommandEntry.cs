using System.Buffers.Binary;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// Payload of a log entry that carries commands: <c>i64 cluster time in ms, u32 count, then count × (u32 length,
/// command)</c>. Stateless.
/// </summary>
internal static class CommandEntry
{
    public const int HeaderBytes = 12;
    public const int ItemHeaderBytes = 4;

    /// <summary>Writes the beginning of a payload. Returns the rest of the room.</summary>
    public static Span<byte> WriteHeader(Span<byte> payload, long timeMs, int count)
    {
        BinaryPrimitives.WriteInt64LittleEndian(payload, timeMs);
        BinaryPrimitives.WriteUInt32LittleEndian(payload[8..], (uint)count);
        return payload[HeaderBytes..];
    }

    /// <summary>Writes the next command. Returns the rest of the room.</summary>
    public static Span<byte> WriteItem(Span<byte> room, scoped ReadOnlySpan<byte> command)
    {
        BinaryPrimitives.WriteUInt32LittleEndian(room, (uint)command.Length);
        command.CopyTo(room[ItemHeaderBytes..]);
        return room[(ItemHeaderBytes + command.Length)..];
    }

    public static bool TryReadHeader(ReadOnlySpan<byte> payload, out long timeMs, out int count,
        out ReadOnlySpan<byte> items)
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
