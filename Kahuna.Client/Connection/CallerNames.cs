using System.Text.RegularExpressions;

namespace Kahuna.Client.Connection;

/// <summary>
/// Says what a refusal says with the names that a caller of this SDK knows, where the wire has others. Stateless, any
/// thread.
/// </summary>
internal static partial class CallerNames
{
    private static readonly Dictionary<string, string> s_names = new(StringComparer.Ordinal)
    {
        ["if_absent"] = "OnlyIfAbsent",
        ["if_present"] = "OnlyIfPresent",
        ["if_value"] = "OnlyIfValue",
        ["if_revision"] = "OnlyIfRevision",
        ["at_revision"] = "AtRevision",
        ["without_history"] = "WithoutHistory",
        ["return_previous"] = "ReturnPrevious",
        ["lease_ms"] = "Lease",
        ["wait_ms"] = "Wait",
        ["hold_ms"] = "Hold",
        ["ttl_ms"] = "Ttl",
    };

    /// <summary>
    /// The sentence with the caller's names; spans have their unit behind the number instead of in the name.
    /// </summary>
    public static string Of(string sentence) => Field().Replace(
        Span().Replace(sentence, "$1 is $2 ms; it must be $3 to $4 ms"),
        static match => s_names.GetValueOrDefault(match.Value, match.Value));

    [GeneratedRegex(@"\b([a-z]+_ms) is (-?\d+(?:,\d+)*); it must be (\d+(?:,\d+)*) to (\d+(?:,\d+)*)", RegexOptions.CultureInvariant)]
    private static partial Regex Span();

    [GeneratedRegex(@"\b[a-z]+_[a-z]+\b", RegexOptions.CultureInvariant)]
    private static partial Regex Field();
}
