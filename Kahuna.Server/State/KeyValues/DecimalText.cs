using System.Buffers.Text;

namespace Kahuna.Server.State.KeyValues;

/// <summary>
/// Integers as increment reads and writes them: decimal ASCII in the shortest form. Stateless, any thread.
/// </summary>
internal static class DecimalText
{
    /// <summary>Longest form: a minus sign and 19 digits.</summary>
    public const int BytesMax = 20;

    /// <summary>
    /// Reads a signed 64-bit integer that is written exactly as <see cref="Write"/> would: a minus sign or none, no
    /// plus sign, no leading zero, no "-0", no space. False for anything else, and for what is outside the range.
    /// </summary>
    public static bool TryRead(ReadOnlySpan<byte> text, out long value)
    {
        if (text.Length > BytesMax || !Utf8Parser.TryParse(text, out value, out int taken) || taken != text.Length)
        {
            value = 0;
            return false;
        }

        Span<byte> again = stackalloc byte[BytesMax];
        return Write(value, again).SequenceEqual(text);
    }

    /// <summary>Writes a value to the start of <paramref name="target"/> and returns that part.</summary>
    public static ReadOnlySpan<byte> Write(long value, Span<byte> target)
    {
        Utf8Formatter.TryFormat(value, target, out int written);
        return target[..written];
    }
}
