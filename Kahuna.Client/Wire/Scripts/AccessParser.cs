namespace Kahuna.Wire.Scripts;

/// <summary>Parses reads and writes with their keys and modifiers. One owner, not thread-safe.</summary>
internal sealed class AccessParser(ScriptTokens tokens, ScriptExpressionParser expressions, ScriptKeyUses uses)
{
    /// <summary>True when the next token begins a data statement.</summary>
    public bool IsNext => tokens.Next.Kind == ScriptTokenKind.Keyword && KindOf(tokens.Next.Text) is not null;

    /// <summary>Parses a data statement, which is next.</summary>
    /// <exception cref="ScriptSyntaxException">It is not one.</exception>
    public AccessExpression Parse()
    {
        ScriptToken word = tokens.Take();
        (ScriptAccess kind, bool isEphemeral) = KindOf(word.Text) ?? throw tokens.Expected("a statement", word);
        kind = ParseScope(kind);
        ScriptExpression key = ParseKey(kind);
        uses.Add(kind, isEphemeral, key);
        ScriptExpression? operand = kind switch
        {
            ScriptAccess.Get or ScriptAccess.Exists when tokens.TryTakeKeyword("at") => expressions.Parse(),
            ScriptAccess.Set or ScriptAccess.Extend => expressions.Parse(),
            _ => null,
        };
        return new AccessExpression(
            word.Position,
            kind,
            isEphemeral,
            key,
            operand,
            kind == ScriptAccess.Set ? ParseOptions() : null);
    }

    private static (ScriptAccess Kind, bool IsEphemeral)? KindOf(string word) => word switch
    {
        "get" => (ScriptAccess.Get, false),
        "eget" => (ScriptAccess.Get, true),
        "exists" => (ScriptAccess.Exists, false),
        "eexists" => (ScriptAccess.Exists, true),
        "set" => (ScriptAccess.Set, false),
        "eset" => (ScriptAccess.Set, true),
        "delete" or "del" => (ScriptAccess.Delete, false),
        "edelete" or "edel" => (ScriptAccess.Delete, true),
        "extend" => (ScriptAccess.Extend, false),
        "eextend" => (ScriptAccess.Extend, true),
        "scan" => (ScriptAccess.Prefix, false),
        "escan" => (ScriptAccess.Prefix, true),
        _ => null,
    };

    private ScriptAccess ParseScope(ScriptAccess kind)
    {
        if (kind == ScriptAccess.Prefix)
        {
            tokens.TakeKeyword("by");
            TakeWord("prefix");
            return kind;
        }

        if (kind == ScriptAccess.Get && tokens.TryTakeKeyword("by"))
        {
            TakeWord("bucket");
            return ScriptAccess.Bucket;
        }

        return kind;
    }

    /// <summary>Takes a word that is reserved only here.</summary>
    private void TakeWord(string word)
    {
        if (tokens.Next.Kind != ScriptTokenKind.Name
            || !tokens.Next.Text.Equals(word, StringComparison.OrdinalIgnoreCase))
        {
            throw tokens.Expected($"'{word}'");
        }

        tokens.Take();
    }

    private ScriptExpression ParseKey(ScriptAccess kind)
    {
        ScriptToken token = tokens.Next;
        ScriptExpression key;
        switch (token.Kind)
        {
            case ScriptTokenKind.Name or ScriptTokenKind.Quoted or ScriptTokenKind.String:
                tokens.Take();
                key = new LiteralExpression(token.Position, ScriptValue.Of(token.Text));
                break;
            case ScriptTokenKind.Parameter:
                tokens.Take();
                key = new ParameterExpression(token.Position, token.Text);
                break;
            case ScriptTokenKind.Symbol when token.Text == "(":
                tokens.Take();
                tokens.Enter();
                key = expressions.Parse();
                tokens.Leave();
                tokens.TakeSymbol(")");
                break;
            default:
                throw tokens.Expected("a key");
        }

        return key is LiteralExpression { Value.Kind: ScriptValueKind.String } literal
            && ScriptKeyUses.Refusal(literal.Value.AsBytes.Span, kind) is { } refusal
            ? throw tokens.Expected(refusal, token)
            : key;
    }

    private ScriptSetOptions ParseOptions()
    {
        ScriptSetOptions options = new();
        while (tokens.Next.Kind == ScriptTokenKind.Keyword)
        {
            ScriptToken word = tokens.Next;
            bool isNew;
            switch (word.Text)
            {
                case "nx":
                    tokens.Take();
                    isNew = !options.IfAbsent;
                    options = options with { IfAbsent = true };
                    break;
                case "xx":
                    tokens.Take();
                    isNew = !options.IfPresent;
                    options = options with { IfPresent = true };
                    break;
                case "norev":
                    tokens.Take();
                    isNew = !options.WithoutHistory;
                    options = options with { WithoutHistory = true };
                    break;
                case "ex":
                    tokens.Take();
                    isNew = options.TtlMs is null;
                    options = options with { TtlMs = expressions.Parse() };
                    break;
                case "cmp":
                    tokens.Take();
                    isNew = options.Compared is null;
                    options = options with { Compared = expressions.Parse() };
                    break;
                case "cmprev":
                    tokens.Take();
                    isNew = options.ComparedRevision is null;
                    options = options with { ComparedRevision = expressions.Parse() };
                    break;
                default:
                    return options;
            }

            Check(options, isNew, word);
        }

        return options;
    }

    private void Check(ScriptSetOptions options, bool isNew, ScriptToken word)
    {
        if (!isNew)
        {
            throw tokens.Expected("each modifier of a set once", word);
        }

        if (options.IfAbsent && (options.IfPresent || options.Compared is not null
            || options.ComparedRevision is not null))
        {
            throw tokens.Expected("NX, which needs an absent key, without XX, CMP and CMPREV, which need one", word);
        }
    }
}
