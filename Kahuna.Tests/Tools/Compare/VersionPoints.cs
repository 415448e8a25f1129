using Kahuna.Tests.Tools.Load;

namespace Kahuna.Tests.Tools.Compare;

/// <summary>
/// What was measured of two versions, field by field, one value for each round. Owned by one report; not thread-safe.
/// </summary>
internal sealed class VersionPoints
{
    private readonly Dictionary<(string Workload, int Workers, string Field, string Version), List<double>> _values =
        [];

    /// <summary>Every field of every point, in the order of a table.</summary>
    public IEnumerable<(string Workload, int Workers, string Field)> Fields =>
        _values.Keys.Select(static key => (key.Workload, key.Workers, key.Field)).Distinct()
        .OrderBy(static key => key.Workload, StringComparer.Ordinal).ThenBy(static key => key.Workers);

    public IReadOnlyList<double> Values(string version, string workload, int workers, string field) =>
        _values[(workload, workers, field, version)];

    public void Add(string version, string workload, int workers, LoadRow row)
    {
        Add(version, workload, workers, "rps", row.Rps);
        Add(version, workload, workers, "p50Ms", row.P50Ms);
        Add(version, workload, workers, "p99Ms", row.P99Ms);
    }

    public void Add(string version, string workload, int workers, string field, double value)
    {
        if (!_values.TryGetValue((workload, workers, field, version), out List<double>? values))
        {
            _values[(workload, workers, field, version)] = values = [];
        }

        values.Add(value);
    }
}
