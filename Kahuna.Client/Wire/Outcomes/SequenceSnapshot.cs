using System.Buffers.Binary;
using Kahuna.Wire.Commands;

namespace Kahuna.Wire.Outcomes;

/// <summary>
/// A sequence as the value of an outcome: its body, its latest value (i64), and whether there is one (u8). A page of a
/// list has, for each sequence, <c>u16 length of the name, name, description</c>. Little-endian. A value.
/// </summary>
/// <param name="Body">Its definition.</param>
/// <param name="Latest">The value taken last; null when none was.</param>
internal readonly record struct SequenceSnapshot(SequenceBody Body, long? Latest)
{
    /// <summary>Bytes of one description.</summary>
    public const int Bytes = SequenceBody.Bytes + sizeof(long) + 1;

    public static bool TryRead(ReadOnlySpan<byte> source, out SequenceSnapshot sequence)
    {
        sequence = default;
        if (source.Length < Bytes || !SequenceBody.TryRead(source, out SequenceBody body))
        {
            return false;
        }

        bool isStarted = source[Bytes - 1] != 0;
        long? latest = isStarted ? BinaryPrimitives.ReadInt64LittleEndian(source[SequenceBody.Bytes..]) : null;
        sequence = new SequenceSnapshot(body, latest);
        return true;
    }

    /// <summary>Reads the next sequence of a page; false at its end or when malformed.</summary>
    public static bool TryNext(ref ReadOnlySpan<byte> page, out ReadOnlySpan<byte> name, out SequenceSnapshot sequence)
    {
        name = default;
        sequence = default;
        if (page.Length <= sizeof(ushort))
        {
            return false;
        }

        int length = BinaryPrimitives.ReadUInt16LittleEndian(page);
        ReadOnlySpan<byte> rest = page[sizeof(ushort)..];
        if (rest.Length < length + Bytes || !TryRead(rest[length..], out sequence))
        {
            return false;
        }

        name = rest[..length];
        page = rest[(length + Bytes)..];
        return true;
    }
}
