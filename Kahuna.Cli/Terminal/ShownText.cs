using System.Buffers;
using System.Globalization;
using System.Text;

namespace Kahuna.Cli.Terminal;

/// <summary>
/// Names and values as a terminal may show them. A key can hold any character, also those that move the cursor, change
/// the title or turn the direction of the text: they are escaped. Static, any thread.
/// <para>
/// The escapes: <c>\n</c>, <c>\r</c>, <c>\t</c>, <c>\\</c>, <c>\xNN</c> for a byte, <c>\u{N}</c> for a code point of
/// 80 or above, both in hexadecimal digits. A byte above 7F is one that is not part of UTF-8 text.
/// </para>
/// </summary>
internal static class ShownText
{
    /// <summary>One line in which nothing is ambiguous.</summary>
    public static string Of(string text) => Of(Encoding.UTF8.GetBytes(text));

    /// <inheritdoc cref="Of(string)"/>
    /// <param name="bytes">UTF-8, or any bytes.</param>
    /// <param name="lengthMax">What is longer is cut, with the size behind it.</param>
    public static string Of(ReadOnlySpan<byte> bytes, int lengthMax = int.MaxValue)
    {
        StringBuilder shown = new();
        int size = bytes.Length;
        while (!bytes.IsEmpty)
        {
            if (shown.Length >= lengthMax)
            {
                shown.Append(CultureInfo.InvariantCulture, $"… ({size:N0} bytes)");
                break;
            }

            bytes = bytes[Append(shown, bytes, keepsLines: false)..];
        }

        return shown.ToString();
    }

    /// <summary>A value for a person: line breaks, tabs and backslashes stay.</summary>
    public static string LinesOf(ReadOnlySpan<byte> bytes)
    {
        StringBuilder shown = new();
        while (!bytes.IsEmpty)
        {
            bytes = bytes[Append(shown, bytes, keepsLines: true)..];
        }

        return shown.ToString();
    }

    /// <summary>A sentence with names of others in it: one line, in which backslashes stay.</summary>
    public static string Sentence(string text) =>
        LinesOf(Encoding.UTF8.GetBytes(text)).ReplaceLineEndings(" ").Replace('\t', ' ');

    private static int Append(StringBuilder shown, ReadOnlySpan<byte> bytes, bool keepsLines)
    {
        if (Rune.DecodeFromUtf8(bytes, out Rune rune, out int length) != OperationStatus.Done)
        {
            shown.Append(CultureInfo.InvariantCulture, $"\\x{bytes[0]:x2}");
            return 1;
        }

        _ = rune.Value switch
        {
            '\n' or '\t' or '\\' when keepsLines => shown.Append((char)rune.Value),
            '\n' => shown.Append("\\n"),
            '\r' => shown.Append("\\r"),
            '\t' => shown.Append("\\t"),
            '\\' => shown.Append("\\\\"),
            _ when !IsEscaped(rune) => shown.Append(rune.ToString()),
            < 0x80 => shown.Append(CultureInfo.InvariantCulture, $"\\x{rune.Value:x2}"),
            _ => shown.Append(CultureInfo.InvariantCulture, $"\\u{{{rune.Value:x}}}"),
        };
        return length;
    }

    private static bool IsEscaped(Rune rune) => Rune.GetUnicodeCategory(rune) is
        UnicodeCategory.Control or UnicodeCategory.Format or UnicodeCategory.LineSeparator
        or UnicodeCategory.ParagraphSeparator or UnicodeCategory.PrivateUse or UnicodeCategory.OtherNotAssigned
        or UnicodeCategory.Surrogate;
}
