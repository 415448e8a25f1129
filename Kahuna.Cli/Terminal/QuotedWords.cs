using System.Globalization;
using System.Text;

namespace Kahuna.Cli.Terminal;

/// <summary>
/// Cuts a line into words, as the shell of the tool and the text of a transaction have them. Blanks separate words.
/// Words in double quotes may have blanks, and the escapes that <see cref="ShownText"/> writes. Words in single quotes
/// are as they stand. <c>#</c> at the beginning of a word begins a comment. In the shell a backslash outside of quotes
/// takes the next character as it is. Static, any thread.
/// </summary>
internal static class QuotedWords
{
    private static readonly UTF8Encoding s_strict = new(false, throwOnInvalidBytes: true);

    /// <summary>The words of a line.</summary>
    /// <param name="line">The line, without its end.</param>
    /// <param name="isShell">A backslash outside of quotes counts.</param>
    /// <exception cref="FormatException">
    /// A quote is not closed or an escape is unknown; the message says where.
    /// </exception>
    public static IReadOnlyList<byte[]> Of(string line, bool isShell = false)
    {
        IReadOnlyList<QuotedWord> words = Cut(line, isShell);
        return words.Count > 0 && words[^1].Quote is { } opened
            ? throw new FormatException($"the quote at column {opened + 1} is not closed")
            : [.. words.Select(static word => word.Bytes)];
    }

    /// <summary>The words of a line as text.</summary>
    /// <exception cref="FormatException">As <see cref="Of"/>, or a word is no text.</exception>
    public static string[] TextOf(string line, bool isShell = false) => [.. Of(line, isShell).Select(Text)];

    /// <summary>The text of a word.</summary>
    /// <exception cref="FormatException">Its bytes are no UTF-8 text.</exception>
    public static string Text(byte[] word)
    {
        try
        {
            return s_strict.GetString(word);
        }
        catch (DecoderFallbackException)
        {
            throw new FormatException($"'{ShownText.Of(word)}' is not UTF-8 text");
        }
    }

    /// <summary>The words of a line whose last quote may still be open.</summary>
    /// <inheritdoc cref="Of"/>
    public static IReadOnlyList<QuotedWord> Cut(string line, bool isShell)
    {
        List<QuotedWord> words = [];
        int at = 0;
        while (true)
        {
            while (at < line.Length && char.IsWhiteSpace(line[at]))
            {
                at++;
            }

            if (at == line.Length || line[at] == '#')
            {
                return words;
            }

            words.Add(Word(line, ref at, isShell));
        }
    }

    private static QuotedWord Word(string line, ref int at, bool isShell)
    {
        List<byte> bytes = [];
        char quote = '\0';
        int start = at;
        int opened = at;
        for (; at < line.Length; at++)
        {
            char next = line[at];
            if (quote == '\0' && char.IsWhiteSpace(next))
            {
                break;
            }

            if (quote == '\0' && next is '"' or '\'' && quote == '\0')
            {
                (quote, opened) = (next, at);
            }
            else if (quote != '\0' && next == quote)
            {
                quote = '\0';
            }
            else if (quote == '"' && next == '\\')
            {
                Escape(line, ref at, bytes);
            }
            else
            {
                if (quote == '\0' && isShell && next == '\\' && ++at == line.Length)
                {
                    throw new FormatException($"nothing stands behind the backslash at column {at}");
                }

                Rune.DecodeFromUtf16(line.AsSpan(at), out Rune rune, out int length);
                bytes.AddRange(Encoding.UTF8.GetBytes(rune.ToString()));
                at += length - 1;
            }
        }

        return new QuotedWord(start, [.. bytes], quote == '\0' ? null : opened);
    }

    private static void Escape(string line, ref int at, List<byte> bytes)
    {
        int begin = at++;
        char kind = at < line.Length ? line[at] : '\0';
        if (kind is 'x' && at + 2 < line.Length
            && byte.TryParse(line.AsSpan(at + 1, 2), NumberStyles.AllowHexSpecifier, null, out byte one))
        {
            bytes.Add(one);
            at += 2;
            return;
        }

        int end = kind is 'u' ? line.IndexOf('}', at) : -1;
        if (end > at + 2 && line[at + 1] == '{'
            && int.TryParse(line.AsSpan((at + 2)..end), NumberStyles.AllowHexSpecifier, null, out int point)
            && Rune.IsValid(point))
        {
            bytes.AddRange(Encoding.UTF8.GetBytes(new Rune(point).ToString()));
            at = end;
            return;
        }

        bytes.Add(kind switch
        {
            'n' => (byte)'\n',
            'r' => (byte)'\r',
            't' => (byte)'\t',
            '\\' or '"' => (byte)kind,
            _ => throw new FormatException(
                $"the escape at column {begin + 1} is none of \\n \\r \\t \\\\ \\\" \\xNN \\u{{N}}"),
        });
    }
}

/// <summary>A word of a line. Immutable.</summary>
/// <param name="Start">Where it begins in the line, with its quotes.</param>
/// <param name="Bytes">What it says, without quotes.</param>
/// <param name="Quote">Where the quote begins that is not closed; null: all are.</param>
internal sealed record QuotedWord(int Start, byte[] Bytes, int? Quote);
