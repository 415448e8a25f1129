namespace Kahuna.Wire.Scripts;

/// <summary>What a token is.</summary>
internal enum ScriptTokenKind
{
    /// <summary>The end of the text.</summary>
    End,

    /// <summary>A name of a variable, key or function.</summary>
    Name,

    /// <summary>A name in back-ticks.</summary>
    Quoted,

    /// <summary>A reserved word.</summary>
    Keyword,

    /// <summary>An integer without its sign.</summary>
    Integer,

    /// <summary>A double without its sign.</summary>
    Double,

    /// <summary>A string.</summary>
    String,

    /// <summary><c>@name</c>.</summary>
    Parameter,

    /// <summary>An operator or a bracket.</summary>
    Symbol,
}

/// <summary>The smallest part of a script's text. Immutable.</summary>
/// <param name="Kind">What it is.</param>
/// <param name="Text">
/// A keyword in lower case, a symbol in its first spelling, a name or a string without quotes and escapes; else empty.
/// </param>
/// <param name="Number">The magnitude of an integer, the bits of a double.</param>
/// <param name="Start">Index of its first character.</param>
/// <param name="Length">Its characters.</param>
/// <param name="Position">Where it begins.</param>
internal readonly record struct ScriptToken(
    ScriptTokenKind Kind, string Text, ulong Number, int Start, int Length, ScriptPosition Position);
