namespace Kahuna.Wire.Scripts;

/// <summary>
/// Parses the options of <c>begin</c>. Locking, timeout and priority are checked, and have no effect on a script that
/// runs inside its partition. One owner, not thread-safe.
/// </summary>
internal sealed class ScriptBlockOptions(ScriptTokens tokens)
{
    /// <summary>The longest timeout: five minutes.</summary>
    private const ulong TimeoutMsMax = 300_000;

    /// <summary>Parses the options, if there are any. True when the end of the block commits.</summary>
    /// <exception cref="ScriptSyntaxException">An option is unknown, repeated, or has a wrong value.</exception>
    public bool Parse()
    {
        bool commitsAtEnd = true;
        if (!tokens.TryTakeSymbol("("))
        {
            return commitsAtEnd;
        }

        HashSet<string> given = new(StringComparer.OrdinalIgnoreCase);
        do
        {
            ScriptToken name = tokens.Next;
            string option = tokens.TakeName("locking, timeout, autoCommit or priority");
            if (!given.Add(option))
            {
                throw tokens.Expected("each option once", name);
            }

            tokens.TakeSymbol("=");
            if (Is(option, "autoCommit"))
            {
                commitsAtEnd = ParseAutoCommit();
            }
            else
            {
                CheckOther(option, name);
            }
        }
        while (tokens.TryTakeSymbol(","));
        tokens.TakeSymbol(")");
        return commitsAtEnd;
    }

    private static bool Is(string option, string name) => option.Equals(name, StringComparison.OrdinalIgnoreCase);

    private bool ParseAutoCommit()
    {
        bool isTrue = tokens.IsKeyword("true");
        if (!isTrue && !tokens.IsKeyword("false"))
        {
            throw tokens.Expected("true or false");
        }

        tokens.Take();
        return isTrue;
    }

    private void CheckOther(string option, ScriptToken name)
    {
        ScriptToken value = tokens.Next;
        (bool isGood, string expected) = option switch
        {
            _ when Is(option, "locking") => (
                value.Kind == ScriptTokenKind.Name && (Is(value.Text, "pessimistic") || Is(value.Text, "optimistic")),
                "pessimistic or optimistic"),
            _ when Is(option, "timeout") => (
                value is { Kind: ScriptTokenKind.Integer, Number: >= 1 and <= TimeoutMsMax },
                "1 to 300,000 milliseconds"),
            _ when Is(option, "priority") => (
                value is { Kind: ScriptTokenKind.Name } or { Kind: ScriptTokenKind.Integer, Number: <= int.MaxValue },
                "a word or an integer"),
            _ => throw tokens.Expected("locking, timeout, autoCommit or priority", name),
        };
        if (!isGood)
        {
            throw tokens.Expected(expected);
        }

        tokens.Take();
    }
}
