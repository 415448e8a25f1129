namespace Kahuna.Tests.Tools.Paths;

/// <summary>The methods that one operation enters, in the client, the leader and the followers. Immutable.</summary>
internal sealed record OperationPath(string Operation, IReadOnlyList<WovenMethod> Methods)
{
    /// <summary>
    /// A method with fewer statements is a name for an expression: who follows the operation does not stop there.
    /// </summary>
    public const int StatementsMin = 5;

    /// <summary>The methods at which a reader who follows the operation stops.</summary>
    public IReadOnlyList<WovenMethod> Stations { get; } =
    [
        .. Methods.Where(method =>
            !method.IsAccessor
            && method.Statements >= StatementsMin
            && method.File.StartsWith("Kahuna.", StringComparison.Ordinal)
            && !method.File.Contains("/obj/", StringComparison.Ordinal)),
    ];

    /// <summary>The files of the stations.</summary>
    public IReadOnlyList<string> Files =>
        [.. Stations.Select(static station => station.File).Distinct().Order(StringComparer.Ordinal)];

    /// <summary>The types of the stations.</summary>
    public IReadOnlyList<string> Types =>
        [.. Stations.Select(static station => station.Type).Distinct().Order(StringComparer.Ordinal)];
}
