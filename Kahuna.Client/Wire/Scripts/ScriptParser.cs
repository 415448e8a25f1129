using Kahuna.Wire.Commands;

namespace Kahuna.Wire.Scripts;

/// <summary>
/// Parses the statements of a script by recursive descent; levels are counted, so that no text overflows the stack. One
/// owner, not thread-safe.
/// </summary>
internal sealed class ScriptParser
{
    private readonly ScriptTokens _tokens;
    private readonly ScriptExpressionParser _expressions;
    private readonly AccessParser _statements;
    private readonly ScriptBlockOptions _options;
    private int _loops;

    public ScriptParser(string text, ScriptLanguage language)
    {
        _tokens = new ScriptTokens(text, language);
        _expressions = new ScriptExpressionParser(_tokens);
        _statements = new AccessParser(_tokens, _expressions, Uses);
        _options = new ScriptBlockOptions(_tokens);
    }

    /// <summary>What the text says about its keys.</summary>
    public ScriptKeyUses Uses { get; } = new();

    /// <inheritdoc cref="ScriptTokens.Level"/>
    public FeatureLevel Level => _tokens.Level;

    /// <summary>Parses the whole text.</summary>
    /// <exception cref="ScriptSyntaxException">It is not a script.</exception>
    public IReadOnlyList<ScriptStatement> Parse()
    {
        List<ScriptStatement> body = ParseBody();
        return _tokens.Next.Kind == ScriptTokenKind.End ? body : throw _tokens.Expected("a statement");
    }

    /// <summary>Statements up to a word that ends their block, or to the end.</summary>
    private List<ScriptStatement> ParseBody()
    {
        _tokens.Enter();
        List<ScriptStatement> body = [];
        while (_tokens.Next.Kind != ScriptTokenKind.End && !IsEndOfBody())
        {
            body.Add(ParseStatement());
        }

        _tokens.Leave();
        return body;
    }

    private bool IsEndOfBody() =>
        _tokens.Next is { Kind: ScriptTokenKind.Keyword, Text: "end" or "else" or "elseif" };

    private ScriptStatement ParseStatement()
    {
        ScriptToken token = _tokens.Next;
        if (_statements.IsNext)
        {
            return new AccessStatement(token.Position, _statements.Parse());
        }

        string word = token.Kind == ScriptTokenKind.Keyword ? token.Text : "";
        switch (word)
        {
            case "let":
                return ParseLet();
            case "if":
                return ParseIf();
            case "for":
                return ParseFor();
            case "while":
                return ParseWhile();
            case "begin":
                return ParseBlock();
            case "break" or "continue":
                _tokens.Take();
                return _loops > 0
                    ? new JumpStatement(token.Position, word == "break")
                    : throw _tokens.Expected("this statement inside a loop of the same block", token);
            case "commit" or "rollback":
                return ParseCommit();
            case "return":
                return new FinishStatement(token.Position, IsRollback: false, ParseReturned());
            case "throw":
                _tokens.Take();
                return new ThrowStatement(token.Position, _expressions.Parse());
            default:
                throw NoStatement(token);
        }
    }

    private ScriptSyntaxException NoStatement(ScriptToken token) =>
        token.Kind == ScriptTokenKind.Name && token.Text.Equals("sleep", StringComparison.OrdinalIgnoreCase)
            ? _tokens.Expected("a statement that does not wait, because a script holds locks while it runs", token)
            : _tokens.Expected("a statement", token);

    private LetStatement ParseLet()
    {
        ScriptPosition position = _tokens.Take().Position;
        string name = _tokens.TakeName("the name of a variable");
        _tokens.TakeSymbol("=");
        return new LetStatement(
            position, name, _statements.IsNext ? _statements.Parse() : _expressions.Parse());
    }

    private IfStatement ParseIf()
    {
        ScriptPosition position = _tokens.Position;
        List<ScriptBranch> branches = [];
        do
        {
            ScriptPosition start = _tokens.Take().Position;
            ScriptExpression condition = _expressions.Parse();
            _tokens.TakeKeyword("then");
            branches.Add(new ScriptBranch(start, condition, ParseBody()));
        }
        while (_tokens.IsKeyword("elseif"));
        List<ScriptStatement> otherwise = _tokens.TryTakeKeyword("else") ? ParseBody() : [];
        TakeEnd();
        return new IfStatement(position, branches, otherwise);
    }

    private ForStatement ParseFor()
    {
        ScriptPosition position = _tokens.Take().Position;
        string name = _tokens.TakeName("the name of a variable");
        _tokens.TakeKeyword("in");
        ScriptExpression items = _expressions.Parse();
        return new ForStatement(position, name, items, ParseLoop());
    }

    private WhileStatement ParseWhile()
    {
        ScriptPosition position = _tokens.Take().Position;
        ScriptExpression condition = _expressions.Parse();
        return new WhileStatement(position, condition, ParseLoop());
    }

    private List<ScriptStatement> ParseLoop()
    {
        _tokens.TakeKeyword("do");
        _loops++;
        List<ScriptStatement> body = ParseBody();
        _loops--;
        TakeEnd();
        return body;
    }

    private BlockStatement ParseBlock()
    {
        ScriptPosition position = _tokens.Take().Position;
        bool commitsAtEnd = _options.Parse();

        // A jump out of a block would leave open whether the block was committed.
        int loops = _loops;
        _loops = 0;
        List<ScriptStatement> body = ParseBody();
        _loops = loops;
        TakeEnd();
        return new BlockStatement(position, commitsAtEnd, body);
    }

    /// <summary>A return behind commit or rollback says what the result is.</summary>
    private FinishStatement ParseCommit()
    {
        ScriptToken word = _tokens.Take();
        ScriptExpression? value = _tokens.IsKeyword("return") ? ParseReturned() : null;
        return new FinishStatement(word.Position, word.Text == "rollback", value);
    }

    /// <summary>
    /// The value behind <c>return</c>, or null. A data statement belongs to it if it begins on the same line.
    /// </summary>
    private ScriptExpression? ParseReturned()
    {
        int line = _tokens.Take().Position.Line;
        if (_statements.IsNext)
        {
            return _tokens.Position.Line == line ? _statements.Parse() : null;
        }

        bool hasNone = _tokens.Next.Kind == ScriptTokenKind.End
            || (_tokens.Next.Kind == ScriptTokenKind.Keyword
                && _tokens.Next.Text is not ("not" or "true" or "false" or "null"));
        return hasNone ? null : _expressions.Parse();
    }

    private void TakeEnd()
    {
        if (!_tokens.TryTakeKeyword("end"))
        {
            throw _tokens.Expected("a statement or 'end'");
        }
    }
}
