using System.Globalization;
using System.Text;

namespace Kahuna.Server.Access;

/// <summary>
/// Quotes a name that a caller sent: on one line, without characters that a terminal or a log would obey. Pure.
/// </summary>
internal static class QuotedName
{
    /// <summary>Characters of a name that are shown; the rest is cut.</summary>
    public const int CharactersMax = 128;

    /// <summary>The name, UTF-8, in quotes. What is not UTF-8 is shown as U+FFFD.</summary>
    public static string Of(ReadOnlySpan<byte> name)
    {
        StringBuilder text = new("\"");
        int shown = 0;
        while (!name.IsEmpty && shown < CharactersMax)
        {
            Rune.DecodeFromUtf8(name, out Rune rune, out int taken);
            name = name[taken..];
            Append(text, rune);
            shown++;
        }

        return text.Append(name.IsEmpty ? "\"" : "…\"").ToString();
    }

    /// <summary>The name in quotes.</summary>
    public static string Of(string name) => Of(Encoding.UTF8.GetBytes(name));

    private static void Append(StringBuilder text, Rune rune)
    {
        if (rune.Value is '"' or '\\')
        {
            text.Append('\\').Append((char)rune.Value);
        }
        else if (Rune.GetUnicodeCategory(rune)
            is UnicodeCategory.Control
            or UnicodeCategory.Format
            or UnicodeCategory.LineSeparator
            or UnicodeCategory.ParagraphSeparator
            or UnicodeCategory.OtherNotAssigned
            or UnicodeCategory.PrivateUse)
        {
            text.Append(CultureInfo.InvariantCulture, $"\\u{{{rune.Value:X4}}}");
        }
        else
        {
            text.Append(rune.ToString());
        }
    }
}
