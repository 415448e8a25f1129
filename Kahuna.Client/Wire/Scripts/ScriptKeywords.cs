namespace Kahuna.Wire.Scripts;

/// <summary>The reserved words, which are names only in back-ticks. Immutable; any thread.</summary>
internal static class ScriptKeywords
{
    private static readonly Dictionary<string, string> s_words = new[]
    {
        "set", "get", "exists", "delete", "del", "extend", "scan",
        "eset", "eget", "eexists", "edelete", "edel", "eextend", "escan",
        "by", "at", "nx", "xx", "ex", "cmp", "cmprev", "norev",
        "let", "if", "then", "elseif", "else", "end", "for", "in", "do", "while", "break", "continue",
        "begin", "commit", "rollback", "return", "throw",
        "not", "found", "deleted", "extended", "true", "false", "null",
    }.ToDictionary(word => word, StringComparer.OrdinalIgnoreCase);

    /// <summary>The word in lower case, or null if <paramref name="name"/> is not reserved.</summary>
    public static string? Find(ReadOnlySpan<char> name) =>
        s_words.GetAlternateLookup<ReadOnlySpan<char>>().TryGetValue(name, out string? word) ? word : null;
}
