using Kahuna.Tests.Tools.Load;
using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools.Compare;

/// <summary>
/// A point of one system: the medians of its rounds, the lowest and the highest rate, and all faults. Immutable.
/// </summary>
internal sealed record ComparePoint(
    string Workload, int Workers, string System, int Rounds, double Rps, double RpsMin, double RpsMax,
    double P50Ms, double P99Ms, long Faults)
{
    public static ComparePoint Of(PointKey key, IReadOnlyList<LoadRow> rows)
    {
        double[] rates = [.. rows.Select(static row => row.Rps)];
        return new(
            key.Workload, key.Workers, key.System, rows.Count, rates.Median(), rates.Min(), rates.Max(),
            rows.Select(static row => row.P50Ms).Median(),
            rows.Select(static row => row.P99Ms).Median(), rows.Sum(row => FaultsOf(row, key.Workload)));
    }

    /// <summary>A lock that somebody else has is no fault.</summary>
    public static long FaultsOf(LoadRow row, string workload) =>
        row.Failed + (workload is "lock" or "handover" ? 0 : row.Misses);
}
