using Kahuna.Wire.Commands;

namespace Kahuna.Wire.Scripts;

/// <summary>
/// The tokens of a text with the next one to parse, and how deep the parser is in it. One owner, not thread-safe.
/// </summary>
internal sealed class ScriptTokens
{
    private readonly string _text;
    private readonly ScriptLanguage _language;
    private readonly List<ScriptToken> _tokens;
    private int _next;
    private int _depth;

    /// <summary>Cuts a text into the tokens of a language.</summary>
    /// <exception cref="ScriptSyntaxException">Something in the text begins no token.</exception>
    public ScriptTokens(string text, ScriptLanguage language)
    {
        _text = text;
        _language = language;
        _tokens = ScriptLexer.Tokens(text, language, out FeatureLevel level);
        Level = level;
    }

    /// <summary>The lowest feature level that has all reserved words, and the functions that were taken.</summary>
    public FeatureLevel Level { get; private set; }

    /// <summary>The next token.</summary>
    public ScriptToken Next => _tokens[_next];

    /// <summary>The token behind the next one; the end is followed by itself.</summary>
    public ScriptToken Second => _tokens[Math.Min(_next + 1, _tokens.Count - 1)];

    /// <summary>The place of the next token.</summary>
    public ScriptPosition Position => Next.Position;

    /// <summary>Takes the next token.</summary>
    public ScriptToken Take()
    {
        ScriptToken taken = Next;
        if (taken.Kind != ScriptTokenKind.End)
        {
            _next++;
        }

        return taken;
    }

    /// <summary>True when the next token is this reserved word.</summary>
    public bool IsKeyword(string word) => Next.Kind == ScriptTokenKind.Keyword && Next.Text == word;

    /// <summary>True when the next token is this symbol.</summary>
    public bool IsSymbol(string symbol) => Next.Kind == ScriptTokenKind.Symbol && Next.Text == symbol;

    /// <summary>Takes the next token if it is this reserved word.</summary>
    public bool TryTakeKeyword(string word)
    {
        bool isNext = IsKeyword(word);
        _next += isNext ? 1 : 0;
        return isNext;
    }

    /// <summary>Takes the next token if it is this symbol.</summary>
    public bool TryTakeSymbol(string symbol)
    {
        bool isNext = IsSymbol(symbol);
        _next += isNext ? 1 : 0;
        return isNext;
    }

    /// <summary>Takes this reserved word.</summary>
    /// <exception cref="ScriptSyntaxException">Something else is next.</exception>
    public void TakeKeyword(string word)
    {
        if (!TryTakeKeyword(word))
        {
            throw Expected($"'{word}'");
        }
    }

    /// <summary>Takes this symbol.</summary>
    /// <exception cref="ScriptSyntaxException">Something else is next.</exception>
    public void TakeSymbol(string symbol)
    {
        if (!TryTakeSymbol(symbol))
        {
            throw Expected($"'{symbol}'");
        }
    }

    /// <summary>Takes a name, with or without back-ticks.</summary>
    /// <exception cref="ScriptSyntaxException">Something else is next.</exception>
    public string TakeName(string expected) =>
        Next.Kind is ScriptTokenKind.Name or ScriptTokenKind.Quoted ? Take().Text : throw Expected(expected);

    /// <summary>Takes the name of a function.</summary>
    /// <exception cref="ScriptSyntaxException">There is no such function.</exception>
    public ScriptSignature TakeFunction()
    {
        ScriptToken name = Take();
        ScriptWord word = _language.Function(name.Text) ?? throw Expected("the name of a function", name);
        Level = FeatureLevel.Max(Level, word.Since);
        return word.Signature!;
    }

    /// <summary>Goes one level deeper; each is followed by a <see cref="Leave"/>.</summary>
    /// <exception cref="ScriptSyntaxException">
    /// That is deeper than <see cref="ScriptProgram.NestingMax"/>, so that no text overflows the stack.
    /// </exception>
    public void Enter()
    {
        if (++_depth > ScriptProgram.NestingMax)
        {
            throw Expected("at most 128 levels of nesting");
        }
    }

    /// <summary>Comes back from a level.</summary>
    public void Leave() => _depth--;

    /// <summary>The error that something else should be next.</summary>
    public ScriptSyntaxException Expected(string expected) => Expected(expected, Next);

    /// <summary>The error that something else should stand in the place of <paramref name="found"/>.</summary>
    public ScriptSyntaxException Expected(string expected, ScriptToken found) => ScriptSyntaxException.Expected(
        found.Position,
        expected,
        found.Kind == ScriptTokenKind.End
            ? "the end of the script"
            : ScriptReader.Quote(_text.AsSpan(found.Start, found.Length)));
}
