namespace Kahuna.Wire.Scripts;

/// <summary>Names of the functions, and how many arguments each takes. Immutable; any thread.</summary>
internal static class ScriptFunctions
{
    /// <summary>Arguments of a function that takes any number.</summary>
    public const int ArgumentsMax = 255;

    private static readonly Dictionary<string, ScriptSignature> s_byName = new(StringComparer.Ordinal)
    {
        ["abs"] = new(ScriptFunction.Abs, 1, 1),
        ["pow"] = new(ScriptFunction.Pow, 2, 2),
        ["round"] = new(ScriptFunction.Round, 1, 2),
        ["ceil"] = new(ScriptFunction.Ceil, 1, 1),
        ["floor"] = new(ScriptFunction.Floor, 1, 1),
        ["min"] = new(ScriptFunction.Min, 2, ArgumentsMax),
        ["max"] = new(ScriptFunction.Max, 2, ArgumentsMax),
        ["to_int"] = new(ScriptFunction.ToInteger, 1, 1),
        ["to_integer"] = new(ScriptFunction.ToInteger, 1, 1),
        ["to_long"] = new(ScriptFunction.ToInteger, 1, 1),
        ["to_number"] = new(ScriptFunction.ToInteger, 1, 1),
        ["to_float"] = new(ScriptFunction.ToDouble, 1, 1),
        ["to_double"] = new(ScriptFunction.ToDouble, 1, 1),
        ["to_str"] = new(ScriptFunction.ToText, 1, 1),
        ["to_string"] = new(ScriptFunction.ToText, 1, 1),
        ["to_bool"] = new(ScriptFunction.ToBoolean, 1, 1),
        ["to_boolean"] = new(ScriptFunction.ToBoolean, 1, 1),
        ["to_json"] = new(ScriptFunction.ToJson, 1, 1),
        ["to_bytes"] = new(ScriptFunction.ToBytes, 1, 1),
        ["is_int"] = new(ScriptFunction.IsInteger, 1, 1),
        ["is_integer"] = new(ScriptFunction.IsInteger, 1, 1),
        ["is_long"] = new(ScriptFunction.IsInteger, 1, 1),
        ["is_float"] = new(ScriptFunction.IsDouble, 1, 1),
        ["is_double"] = new(ScriptFunction.IsDouble, 1, 1),
        ["is_str"] = new(ScriptFunction.IsText, 1, 1),
        ["is_string"] = new(ScriptFunction.IsText, 1, 1),
        ["is_bool"] = new(ScriptFunction.IsBoolean, 1, 1),
        ["is_boolean"] = new(ScriptFunction.IsBoolean, 1, 1),
        ["is_null"] = new(ScriptFunction.IsNull, 1, 1),
        ["is_array"] = new(ScriptFunction.IsArray, 1, 1),
        ["is_bytes"] = new(ScriptFunction.IsBytes, 1, 1),
        ["concat"] = new(ScriptFunction.Concat, 1, ArgumentsMax),
        ["upper"] = new(ScriptFunction.Upper, 1, 1),
        ["lower"] = new(ScriptFunction.Lower, 1, 1),
        ["len"] = new(ScriptFunction.Length, 1, 1),
        ["length"] = new(ScriptFunction.Length, 1, 1),
        ["substring"] = new(ScriptFunction.Substring, 2, 3),
        ["starts_with"] = new(ScriptFunction.StartsWith, 2, 2),
        ["ends_with"] = new(ScriptFunction.EndsWith, 2, 2),
        ["index_of"] = new(ScriptFunction.IndexOf, 2, 2),
        ["split"] = new(ScriptFunction.Split, 2, 2),
        ["trim"] = new(ScriptFunction.Trim, 1, 1),
        ["count"] = new(ScriptFunction.Count, 1, 1),
        ["revision"] = new(ScriptFunction.Revision, 1, 1),
        ["rev"] = new(ScriptFunction.Revision, 1, 1),
        ["expires"] = new(ScriptFunction.Expires, 1, 1),
        ["current_time"] = new(ScriptFunction.CurrentTime, 0, 0),
    };

    /// <summary>All names.</summary>
    public static IReadOnlyCollection<string> Names => s_byName.Keys;

    /// <summary>Finds a function by its name.</summary>
    public static bool TryFind(string name, out ScriptSignature signature) =>
        s_byName.TryGetValue(name, out signature);
}

/// <summary>A function with the least and the most arguments that it takes. Immutable.</summary>
internal readonly record struct ScriptSignature(ScriptFunction Function, int ArgumentsMin, int ArgumentsMax);
