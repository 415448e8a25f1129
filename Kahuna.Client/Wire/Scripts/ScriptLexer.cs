using System.Globalization;
using Kahuna.Wire.Commands;

namespace Kahuna.Wire.Scripts;

/// <summary>Cuts the text of a script into tokens. One owner, not thread-safe.</summary>
internal sealed class ScriptLexer
{
    private readonly ScriptReader _reader;
    private readonly ScriptStrings _strings;
    private readonly ScriptLanguage _language;
    private FeatureLevel _level;

    private ScriptLexer(string text, ScriptLanguage language)
    {
        _language = language;
        _reader = new ScriptReader(text);
        _strings = new ScriptStrings(_reader);
    }

    /// <summary>The tokens of <paramref name="text"/>; the last one is its end.</summary>
    /// <param name="text">The text.</param>
    /// <param name="language">Says which words are reserved.</param>
    /// <param name="level">The lowest feature level that has all reserved words of the text.</param>
    /// <exception cref="ScriptSyntaxException">Something in the text begins no token.</exception>
    public static List<ScriptToken> Tokens(string text, ScriptLanguage language, out FeatureLevel level)
    {
        ScriptLexer lexer = new(text, language);
        List<ScriptToken> tokens = [];
        do
        {
            tokens.Add(lexer.Next());
        }
        while (tokens[^1].Kind != ScriptTokenKind.End);
        level = lexer._level;
        return tokens;
    }

    private ScriptToken Next()
    {
        SkipBlanks();
        int start = _reader.Index;
        ScriptPosition position = _reader.Position;
        if (_reader.IsAtEnd)
        {
            return new ScriptToken(ScriptTokenKind.End, "", 0, start, 0, position);
        }

        ulong number = 0;
        (ScriptTokenKind kind, string text) = _reader.Next switch
        {
            '"' or '\'' => (ScriptTokenKind.String, _strings.ReadString()),
            '`' => (ScriptTokenKind.Quoted, _strings.ReadQuotedName()),
            '@' => (ScriptTokenKind.Parameter, ReadParameter()),
            >= '0' and <= '9' => (ReadNumber(out number), ""),
            char c when IsNameStart(c) => ReadWord(),
            _ => (ScriptTokenKind.Symbol, ReadSymbol()),
        };
        return new ScriptToken(kind, text, number, start, _reader.Index - start, position);
    }

    private void SkipBlanks()
    {
        while (!_reader.IsAtEnd)
        {
            if (_reader.Next == '#')
            {
                while (!_reader.IsAtEnd && _reader.Next != '\n')
                {
                    _reader.Skip();
                }
            }
            else if (_reader.Next is ' ' or '\t' or '\r' or '\n')
            {
                _reader.Skip();
            }
            else
            {
                return;
            }
        }
    }

    private string ReadName()
    {
        int start = _reader.Index;
        while (IsNamePart(_reader.Next))
        {
            _reader.Skip();
        }

        return _reader.Since(start).ToString();
    }

    private (ScriptTokenKind Kind, string Text) ReadWord()
    {
        string name = ReadName();
        if (_language.Reserved(name) is not { } word)
        {
            return (ScriptTokenKind.Name, name);
        }

        _level = FeatureLevel.Max(_level, word.Since);
        return (ScriptTokenKind.Keyword, word.Name);
    }

    private string ReadParameter()
    {
        _reader.Skip();
        return IsNameStart(_reader.Next)
            ? ReadName()
            : throw ScriptSyntaxException.Expected(
                _reader.Position, "the name of a parameter behind '@'", _reader.Found());
    }

    private ScriptTokenKind ReadNumber(out ulong number)
    {
        int start = _reader.Index;
        ScriptPosition position = _reader.Position;
        bool isHex = _reader.Next == '0' && _reader.At(1) is 'x' or 'X';
        bool isDouble = false;
        if (isHex)
        {
            _reader.Skip(2);
            SkipWhile(char.IsAsciiHexDigit);
        }
        else
        {
            SkipWhile(char.IsAsciiDigit);
            isDouble = SkipFraction() | SkipExponent();
        }

        // Letters that follow at once belong to the same word, which is then no number.
        bool isWhole = !IsNamePart(_reader.Next);
        SkipWhile(IsNamePart);
        ReadOnlySpan<char> text = _reader.Since(start);
        number = 0;
        if (isDouble && isWhole
            && double.TryParse(text, NumberStyles.Float, CultureInfo.InvariantCulture, out double read)
            && double.IsFinite(read))
        {
            number = BitConverter.DoubleToUInt64Bits(read);
            return ScriptTokenKind.Double;
        }

        // The magnitude of the smallest integer is one more than that of the largest.
        const ulong MagnitudeMax = 1UL << 63;
        NumberStyles style = isHex ? NumberStyles.AllowHexSpecifier : NumberStyles.None;
        return !isDouble && isWhole
            && ulong.TryParse(isHex ? text[2..] : text, style, CultureInfo.InvariantCulture, out number)
            && number <= MagnitudeMax
            ? ScriptTokenKind.Integer
            : throw ScriptSyntaxException.Expected(
                position,
                isDouble ? "a finite double" : "an integer of 64 bits",
                ScriptReader.Quote(text));
    }

    private bool SkipFraction()
    {
        // Two dots are the operator of ranges.
        if (_reader.Next != '.' || !char.IsAsciiDigit(_reader.At(1)))
        {
            return false;
        }

        _reader.Skip();
        SkipWhile(char.IsAsciiDigit);
        return true;
    }

    private bool SkipExponent()
    {
        if (_reader.Next is not ('e' or 'E'))
        {
            return false;
        }

        int sign = _reader.At(1) is '+' or '-' ? 1 : 0;
        if (!char.IsAsciiDigit(_reader.At(1 + sign)))
        {
            return false;
        }

        _reader.Skip(1 + sign);
        SkipWhile(char.IsAsciiDigit);
        return true;
    }

    private string ReadSymbol()
    {
        (string symbol, int length) = (_reader.Next, _reader.At(1)) switch
        {
            ('|', '|') => ("||", 2),
            ('&', '&') => ("&&", 2),
            ('=', '=') => ("=", 2),
            ('!', '=') => ("!=", 2),
            ('<', '>') => ("!=", 2),
            ('<', '=') => ("<=", 2),
            ('>', '=') => (">=", 2),
            ('.', '.') => ("..", 2),
            ('=', _) => ("=", 1),
            ('!', _) => ("!", 1),
            ('<', _) => ("<", 1),
            ('>', _) => (">", 1),
            ('+', _) => ("+", 1),
            ('-', _) => ("-", 1),
            ('*', _) => ("*", 1),
            ('/', _) => ("/", 1),
            ('%', _) => ("%", 1),
            ('(', _) => ("(", 1),
            (')', _) => (")", 1),
            ('[', _) => ("[", 1),
            (']', _) => ("]", 1),
            (',', _) => (",", 1),
            _ => throw ScriptSyntaxException.Expected(
                _reader.Position, "a statement or an expression", _reader.Found()),
        };
        _reader.Skip(length);
        return symbol;
    }

    private void SkipWhile(Func<char, bool> isPart)
    {
        while (isPart(_reader.Next))
        {
            _reader.Skip();
        }
    }

    private static bool IsNameStart(char c) => char.IsAsciiLetter(c) || c == '_';

    private static bool IsNamePart(char c) => char.IsAsciiLetterOrDigit(c) || c == '_';
}
