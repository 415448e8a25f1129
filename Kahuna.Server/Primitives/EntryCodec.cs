using System.Buffers.Binary;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Primitives;

/// <summary>
/// Encoding of consecutive log entries, in appends between nodes and in log records. The first entry's index is carried
/// beside them; each further entry has the next index. Stateless.
/// <code>
/// entry:  u64 term, u8 kind, u8[3] zero, u32 payload length, payload
/// </code>
/// </summary>
internal static class EntryCodec
{
    public const int HeaderBytes = 16;

    public static void Write(ByteBuffer target, Term term, EntryKind kind, ReadOnlySpan<byte> payload)
    {
        Span<byte> span = target.Take(HeaderBytes + payload.Length);
        BinaryPrimitives.WriteUInt64LittleEndian(span, term.Value);
        BinaryPrimitives.WriteUInt32LittleEndian(span[8..], (byte)kind);
        BinaryPrimitives.WriteUInt32LittleEndian(span[12..], (uint)payload.Length);
        payload.CopyTo(span[HeaderBytes..]);
    }

    /// <summary>
    /// Takes the next entry off <paramref name="rest"/>. False at the end, when <paramref name="rest"/> is empty, or
    /// when the rest is no entry.
    /// </summary>
    public static bool TryRead(
        ref ReadOnlySpan<byte> rest, out Term term, out EntryKind kind, out ReadOnlySpan<byte> payload)
    {
        term = default;
        kind = default;
        payload = default;
        if (rest.Length < HeaderBytes)
        {
            return false;
        }

        uint length = BinaryPrimitives.ReadUInt32LittleEndian(rest[12..]);
        uint rawKind = BinaryPrimitives.ReadUInt32LittleEndian(rest[8..]);
        if (rawKind > (byte)EntryKind.Check || length > (uint)(rest.Length - HeaderBytes))
        {
            return false;
        }

        term = new Term(BinaryPrimitives.ReadUInt64LittleEndian(rest));
        kind = (EntryKind)rawKind;
        payload = rest.Slice(HeaderBytes, (int)length);
        rest = rest[(HeaderBytes + (int)length)..];
        return true;
    }
}
