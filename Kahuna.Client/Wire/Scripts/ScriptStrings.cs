using System.Globalization;
using System.Text;

namespace Kahuna.Wire.Scripts;

/// <summary>Reads strings with their escapes, and names in back-ticks. One owner, not thread-safe.</summary>
internal sealed class ScriptStrings(ScriptReader reader)
{
    /// <summary>Reads a string from its first quote to its last one. It may go over several lines.</summary>
    /// <exception cref="ScriptSyntaxException">It does not end, or an escape is not one.</exception>
    public string ReadString()
    {
        ScriptPosition start = reader.Position;
        char quote = reader.Next;
        reader.Skip();
        StringBuilder text = new();
        while (reader.Next != quote || reader.IsAtEnd)
        {
            if (reader.IsAtEnd)
            {
                throw ScriptSyntaxException.Expected(
                    start, "the closing quote of this string", "the end of the script");
            }

            if (reader.Next == '\\')
            {
                text.Append(ReadEscape());
            }
            else
            {
                text.Append(reader.Next);
                reader.Skip();
            }
        }

        reader.Skip();
        return text.ToString();
    }

    /// <summary>Reads a name from its first back-tick to its last one, without escapes, on one line.</summary>
    /// <exception cref="ScriptSyntaxException">It is empty or does not end.</exception>
    public string ReadQuotedName()
    {
        ScriptPosition position = reader.Position;
        reader.Skip();
        int start = reader.Index;
        while (!reader.IsAtEnd && reader.Next is not ('`' or '\n'))
        {
            reader.Skip();
        }

        if (reader.Next != '`')
        {
            throw ScriptSyntaxException.Expected(position, "the closing back-tick of this name", reader.Found());
        }

        string name = reader.Since(start).ToString();
        reader.Skip();
        return name.Length > 0
            ? name
            : throw ScriptSyntaxException.Expected(position, "a name between the back-ticks", "'``'");
    }

    private string ReadEscape()
    {
        ScriptPosition position = reader.Position;
        int start = reader.Index;
        reader.Skip();
        char kind = reader.Next;
        if (!reader.IsAtEnd)
        {
            reader.Skip();
        }

        return kind switch
        {
            'n' => "\n",
            't' => "\t",
            'r' => "\r",
            '0' => "\0",
            '\\' or '"' or '\'' => kind.ToString(),
            'x' => ReadTwoDigits(position, start),
            'u' => ReadCodePoint(position, start),
            _ => throw WrongEscape(position, start),
        };
    }

    private string ReadTwoDigits(ScriptPosition position, int start)
    {
        ReadOnlySpan<char> digits = ReadDigits(2);
        return digits.Length == 2 ? CharacterOf(digits)! : throw WrongEscape(position, start);
    }

    private string ReadCodePoint(ScriptPosition position, int start)
    {
        const int DigitsMax = 6;
        if (reader.Next != '{')
        {
            throw WrongEscape(position, start);
        }

        reader.Skip();
        string? character = CharacterOf(ReadDigits(DigitsMax));
        if (character is null || reader.Next != '}')
        {
            throw WrongEscape(position, start);
        }

        reader.Skip();
        return character;
    }

    private ReadOnlySpan<char> ReadDigits(int countMax)
    {
        int start = reader.Index;
        while (reader.Index - start < countMax && char.IsAsciiHexDigit(reader.Next))
        {
            reader.Skip();
        }

        return reader.Since(start);
    }

    private static string? CharacterOf(ReadOnlySpan<char> digits) =>
        int.TryParse(digits, NumberStyles.AllowHexSpecifier, CultureInfo.InvariantCulture, out int code)
            && Rune.TryCreate(code, out Rune character)
            ? character.ToString()
            : null;

    private ScriptSyntaxException WrongEscape(ScriptPosition position, int start) => ScriptSyntaxException.Expected(
        position,
        "one of the escapes \\n \\t \\r \\0 \\\\ \\\" \\' \\xHH \\u{H…} of a code point",
        ScriptReader.Quote(reader.Since(start)));
}
