using System.Globalization;

namespace Kahuna.Wire.Scripts;

/// <summary>Parses expressions by the precedence of their operators. One owner, not thread-safe.</summary>
internal sealed class ScriptExpressionParser(ScriptTokens tokens)
{
    /// <summary>The operand of <c>not</c> binds as tight as a comparison.</summary>
    private const int ComparisonLevel = 3;

    private const int WeakestLevel = 1;

    /// <summary>Parses an expression.</summary>
    /// <exception cref="ScriptSyntaxException">There is none.</exception>
    public ScriptExpression Parse() => Parse(WeakestLevel);

    private ScriptExpression Parse(int levelMin)
    {
        ScriptExpression left = ParseOperand();
        while (OperatorOf(tokens.Next) is (ScriptOperator symbol, int level) && level >= levelMin)
        {
            tokens.Take();
            left = new BinaryExpression(left.Position, symbol, left, Parse(level + 1));
        }

        return left;
    }

    private static (ScriptOperator Symbol, int Level)? OperatorOf(ScriptToken token) =>
        token.Kind != ScriptTokenKind.Symbol
            ? null
            : token.Text switch
            {
                "||" => (ScriptOperator.Or, WeakestLevel),
                "&&" => (ScriptOperator.And, 2),
                "=" => (ScriptOperator.Equal, ComparisonLevel),
                "!=" => (ScriptOperator.NotEqual, ComparisonLevel),
                "<" => (ScriptOperator.Less, ComparisonLevel),
                "<=" => (ScriptOperator.LessOrEqual, ComparisonLevel),
                ">" => (ScriptOperator.Greater, ComparisonLevel),
                ">=" => (ScriptOperator.GreaterOrEqual, ComparisonLevel),
                ".." => (ScriptOperator.Range, 4),
                "+" => (ScriptOperator.Add, 5),
                "-" => (ScriptOperator.Subtract, 5),
                "*" => (ScriptOperator.Multiply, 6),
                "/" => (ScriptOperator.Divide, 6),
                "%" => (ScriptOperator.Remainder, 6),
                _ => null,
            };

    private ScriptExpression ParseOperand()
    {
        ScriptPosition position = tokens.Position;
        if (tokens.TryTakeKeyword("not"))
        {
            return ParseGuard(position) ?? ParseUnary(position, ScriptOperator.Not);
        }

        if (tokens.TryTakeSymbol("!"))
        {
            return ParseUnary(position, ScriptOperator.Not);
        }

        return tokens.TryTakeSymbol("-")
            ? ParseUnary(position, ScriptOperator.Negate)
            : ParseIndexes(ParsePrimary());
    }

    private GuardExpression? ParseGuard(ScriptPosition position)
    {
        ScriptGuard? guard = tokens.Next.Kind != ScriptTokenKind.Keyword
            ? null
            : tokens.Next.Text switch
            {
                "set" => ScriptGuard.Set,
                "found" => ScriptGuard.Found,
                "deleted" => ScriptGuard.Deleted,
                "extended" => ScriptGuard.Extended,
                _ => null,
            };
        if (guard is null)
        {
            return null;
        }

        tokens.Take();
        return new GuardExpression(position, guard.Value);
    }

    private ScriptExpression ParseUnary(ScriptPosition position, ScriptOperator symbol)
    {
        if (symbol == ScriptOperator.Negate && tokens.Next.Kind == ScriptTokenKind.Integer)
        {
            // Only so the smallest integer can be written: its magnitude is no integer.
            return ParseIndexes(new LiteralExpression(
                position, ScriptValue.Of(unchecked(-(long)tokens.Take().Number))));
        }

        tokens.Enter();
        ScriptExpression operand = symbol == ScriptOperator.Not ? Parse(ComparisonLevel) : ParseOperand();
        tokens.Leave();
        return new UnaryExpression(position, symbol, operand);
    }

    private ScriptExpression ParseIndexes(ScriptExpression indexed)
    {
        while (tokens.TryTakeSymbol("["))
        {
            tokens.Enter();
            indexed = new BinaryExpression(indexed.Position, ScriptOperator.Index, indexed, Parse());
            tokens.Leave();
            tokens.TakeSymbol("]");
        }

        return indexed;
    }

    private ScriptExpression ParsePrimary()
    {
        ScriptToken token = tokens.Next;
        switch (token.Kind)
        {
            case ScriptTokenKind.Integer:
                tokens.Take();
                return token.Number <= long.MaxValue
                    ? Literal(token, ScriptValue.Of((long)token.Number))
                    : throw tokens.Expected("an integer of 64 bits", token);
            case ScriptTokenKind.Double:
                tokens.Take();
                return Literal(token, ScriptValue.Of(BitConverter.UInt64BitsToDouble(token.Number)));
            case ScriptTokenKind.String:
                tokens.Take();
                return Literal(token, ScriptValue.Of(token.Text));
            case ScriptTokenKind.Parameter:
                tokens.Take();
                return new ParameterExpression(token.Position, token.Text);
            case ScriptTokenKind.Keyword when ConstantOf(token.Text) is { } constant:
                tokens.Take();
                return Literal(token, constant);
            case ScriptTokenKind.Name when tokens.Second is { Kind: ScriptTokenKind.Symbol, Text: "(" }:
                return ParseCall();
            case ScriptTokenKind.Name or ScriptTokenKind.Quoted:
                tokens.Take();
                return new VariableExpression(token.Position, token.Text);
            case ScriptTokenKind.Symbol when token.Text == "(":
                return ParseParentheses();
            case ScriptTokenKind.Symbol when token.Text == "[":
                tokens.Take();
                return new ArrayExpression(token.Position, ParseList("]"));
            default:
                throw tokens.Expected("an expression");
        }
    }

    private static LiteralExpression Literal(ScriptToken token, ScriptValue value) => new(token.Position, value);

    private static ScriptValue? ConstantOf(string word) => word switch
    {
        "true" => ScriptValue.Of(true),
        "false" => ScriptValue.Of(false),
        "null" => ScriptValue.Null,
        _ => null,
    };

    private ScriptExpression ParseParentheses()
    {
        tokens.TakeSymbol("(");
        tokens.Enter();
        ScriptExpression inner = Parse();
        tokens.Leave();
        tokens.TakeSymbol(")");
        return inner;
    }

    private CallExpression ParseCall()
    {
        ScriptToken name = tokens.Next;
        ScriptSignature signature = tokens.TakeFunction();
        tokens.TakeSymbol("(");
        List<ScriptExpression> arguments = ParseList(")");
        return arguments.Count >= signature.ArgumentsMin && arguments.Count <= signature.ArgumentsMax
            ? new CallExpression(name.Position, signature.Function, arguments)
            : throw ScriptSyntaxException.Expected(
                name.Position,
                $"{CountOf(signature)} of {name.Text}",
                string.Create(CultureInfo.InvariantCulture, $"{arguments.Count}"));
    }

    private static string CountOf(ScriptSignature signature)
    {
        (int least, int most) = (signature.ArgumentsMin, signature.ArgumentsMax);
        string count = least == most
            ? string.Create(CultureInfo.InvariantCulture, $"{least}")
            : string.Create(CultureInfo.InvariantCulture, $"{least} to {most}");
        return most == 1 ? $"{count} argument" : $"{count} arguments";
    }

    private List<ScriptExpression> ParseList(string close)
    {
        List<ScriptExpression> items = [];
        if (tokens.TryTakeSymbol(close))
        {
            return items;
        }

        tokens.Enter();
        do
        {
            items.Add(Parse());
        }
        while (tokens.TryTakeSymbol(","));
        tokens.Leave();
        if (!tokens.TryTakeSymbol(close))
        {
            throw tokens.Expected($"',' or '{close}'");
        }

        return items;
    }
}
