using Kahuna.Wire.Commands;

namespace Kahuna.Wire.Scripts;

/// <summary>The words of the language at one feature level. Immutable; any thread.</summary>
internal sealed class ScriptLanguage
{
    private readonly Dictionary<string, ScriptWord> _reserved = new(StringComparer.OrdinalIgnoreCase);
    private readonly Dictionary<string, ScriptWord> _functions = new(StringComparer.Ordinal);

    /// <summary>The words whose level is not above <paramref name="level"/>.</summary>
    public ScriptLanguage(IEnumerable<ScriptWord> rows, FeatureLevel level)
    {
        Level = level;
        foreach (ScriptWord row in rows.Where(row => row.Since <= level).OrderBy(static row => row.Since))
        {
            (row.Signature is null ? _reserved : _functions)[row.Name] = row;
        }
    }

    /// <summary>The language of this release, for scripts that no replica runs.</summary>
    public static ScriptLanguage Newest { get; } = ScriptWords.Released.At(FeatureLevels.Newest);

    /// <summary>The feature level.</summary>
    public FeatureLevel Level { get; }

    /// <summary>The reserved word, which is a name only in back-ticks; null if it is none.</summary>
    public ScriptWord? Reserved(ReadOnlySpan<char> name) =>
        _reserved.GetAlternateLookup<ReadOnlySpan<char>>().TryGetValue(name, out ScriptWord? word) ? word : null;

    /// <summary>The function; null if there is none of this name.</summary>
    public ScriptWord? Function(string name) => _functions.GetValueOrDefault(name);
}
