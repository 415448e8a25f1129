using Kahuna.Wire.Commands;

namespace Kahuna.Wire.Scripts;

/// <summary>
/// The register of the language's words: reserved words and functions, each with the feature level from which on it is
/// one. A release that adds a word adds a row. One that changes what a function does adds a row of the same name with a
/// function of its own and the later level, and the earlier row stays. A partition reads a script with the words of its
/// entry's level (<see cref="At"/>), so a build that has the row does what one without it does until the level is
/// raised (docs/adr/0043-ranges-of-scripts.md). Immutable; any thread.
/// </summary>
/// <param name="rows">The words. Of rows of one name the one of the highest level counts.</param>
internal sealed class ScriptWords(IReadOnlyList<ScriptWord> rows)
{
    /// <summary>Arguments of a function that takes any number.</summary>
    private const int ArgumentsMax = 255;

    /// <summary>The words of this release.</summary>
    public static ScriptWords Released { get; } = new(
    [
        .. new[]
        {
            "set", "get", "exists", "delete", "del", "extend", "scan",
            "eset", "eget", "eexists", "edelete", "edel", "eextend", "escan",
            "by", "at", "nx", "xx", "ex", "cmp", "cmprev", "norev",
            "let", "if", "then", "elseif", "else", "end", "for", "in", "do", "while", "break", "continue",
            "begin", "commit", "rollback", "return", "throw",
            "not", "found", "deleted", "extended", "true", "false", "null",
        }.Select(static name => new ScriptWord(name)),
        new("abs", new(ScriptFunction.Abs, 1, 1)),
        new("pow", new(ScriptFunction.Pow, 2, 2)),
        new("round", new(ScriptFunction.Round, 1, 2)),
        new("ceil", new(ScriptFunction.Ceil, 1, 1)),
        new("floor", new(ScriptFunction.Floor, 1, 1)),
        new("min", new(ScriptFunction.Min, 2, ArgumentsMax)),
        new("max", new(ScriptFunction.Max, 2, ArgumentsMax)),
        new("to_int", new(ScriptFunction.ToInteger, 1, 1)),
        new("to_integer", new(ScriptFunction.ToInteger, 1, 1)),
        new("to_long", new(ScriptFunction.ToInteger, 1, 1)),
        new("to_number", new(ScriptFunction.ToInteger, 1, 1)),
        new("to_float", new(ScriptFunction.ToDouble, 1, 1)),
        new("to_double", new(ScriptFunction.ToDouble, 1, 1)),
        new("to_str", new(ScriptFunction.ToText, 1, 1)),
        new("to_string", new(ScriptFunction.ToText, 1, 1)),
        new("to_bool", new(ScriptFunction.ToBoolean, 1, 1)),
        new("to_boolean", new(ScriptFunction.ToBoolean, 1, 1)),
        new("to_json", new(ScriptFunction.ToJson, 1, 1)),
        new("to_bytes", new(ScriptFunction.ToBytes, 1, 1)),
        new("is_int", new(ScriptFunction.IsInteger, 1, 1)),
        new("is_integer", new(ScriptFunction.IsInteger, 1, 1)),
        new("is_long", new(ScriptFunction.IsInteger, 1, 1)),
        new("is_float", new(ScriptFunction.IsDouble, 1, 1)),
        new("is_double", new(ScriptFunction.IsDouble, 1, 1)),
        new("is_str", new(ScriptFunction.IsText, 1, 1)),
        new("is_string", new(ScriptFunction.IsText, 1, 1)),
        new("is_bool", new(ScriptFunction.IsBoolean, 1, 1)),
        new("is_boolean", new(ScriptFunction.IsBoolean, 1, 1)),
        new("is_null", new(ScriptFunction.IsNull, 1, 1)),
        new("is_array", new(ScriptFunction.IsArray, 1, 1)),
        new("is_bytes", new(ScriptFunction.IsBytes, 1, 1)),
        new("concat", new(ScriptFunction.Concat, 1, ArgumentsMax)),
        new("upper", new(ScriptFunction.Upper, 1, 1)),
        new("lower", new(ScriptFunction.Lower, 1, 1)),
        new("len", new(ScriptFunction.Length, 1, 1)),
        new("length", new(ScriptFunction.Length, 1, 1)),
        new("substring", new(ScriptFunction.Substring, 2, 3)),
        new("starts_with", new(ScriptFunction.StartsWith, 2, 2)),
        new("ends_with", new(ScriptFunction.EndsWith, 2, 2)),
        new("index_of", new(ScriptFunction.IndexOf, 2, 2)),
        new("split", new(ScriptFunction.Split, 2, 2)),
        new("trim", new(ScriptFunction.Trim, 1, 1)),
        new("count", new(ScriptFunction.Count, 1, 1)),
        new("revision", new(ScriptFunction.Revision, 1, 1)),
        new("rev", new(ScriptFunction.Revision, 1, 1)),
        new("expires", new(ScriptFunction.Expires, 1, 1)),
        new("current_time", new(ScriptFunction.CurrentTime, 0, 0)),
    ]);

    /// <summary>Every row.</summary>
    public IReadOnlyList<ScriptWord> Rows => rows;

    /// <summary>The language at a feature level.</summary>
    public ScriptLanguage At(FeatureLevel level) => new(rows, level);
}

/// <summary>A reserved word or a function. Immutable.</summary>
/// <param name="Name">The name. A reserved word is in lower case here, and in any case in a text.</param>
/// <param name="Signature">The function; null: a reserved word.</param>
internal sealed record ScriptWord(string Name, ScriptSignature? Signature = null)
{
    /// <summary>The lowest feature level at which it is a word.</summary>
    public FeatureLevel Since { get; init; }
}

/// <summary>A function with the least and the most arguments that it takes. Immutable.</summary>
internal sealed record ScriptSignature(ScriptFunction Function, int ArgumentsMin, int ArgumentsMax);
