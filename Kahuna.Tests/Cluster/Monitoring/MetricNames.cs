using System.Text.RegularExpressions;

namespace Kahuna.Tests.Cluster.Monitoring;

/// <summary>Finds the metrics that a query names. Stateless.</summary>
internal static partial class MetricNames
{
    /// <summary>Labels have the prefix of metrics; they stand in braces, or behind <c>by</c>.</summary>
    public static IEnumerable<string> In(string query) => Name().Matches(Labels().Replace(query, ""))
        .Select(static name => name.Value).Distinct();

    [GeneratedRegex(@"\{[^}]*\}|by \([^)]*\)")]
    private static partial Regex Labels();

    [GeneratedRegex(@"\b(?:kahuna|dotnet)_\w+")]
    private static partial Regex Name();
}
