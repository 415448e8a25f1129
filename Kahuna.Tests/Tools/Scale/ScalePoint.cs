using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools.Scale;

/// <summary>
/// Rate, latencies, faults, and microseconds of processor time that the three nodes together spent on an operation
/// (null when the run was too short to say). Immutable.
/// </summary>
internal record ScalePoint(
    double Rps, double P50Ms, double P99Ms, double P999Ms, double MaxMs, double Seconds, long Faults,
    double? ProcessorUs)
{
    /// <summary>One point of several: the median of each figure, all faults.</summary>
    public static ScalePoint Middle(IReadOnlyList<ScalePoint> points)
    {
        double[] processor = [.. points.Select(static point => point.ProcessorUs).OfType<double>()];
        return new(
            points.Select(static point => point.Rps).Median(), points.Select(static point => point.P50Ms).Median(),
            points.Select(static point => point.P99Ms).Median(), points.Select(static point => point.P999Ms).Median(),
            points.Select(static point => point.MaxMs).Median(), points.Select(static point => point.Seconds).Median(),
            points.Sum(static point => point.Faults), processor.Length == 0 ? null : processor.Median());
    }
}

/// <summary>A point at a number of keys, the middle of several rounds, with the rate of each.</summary>
internal sealed record SizePoint : ScalePoint
{
    public SizePoint(string workload, int workers, int keys, IReadOnlyList<ScalePoint> points)
        : base(Middle(points)) =>
        (Workload, Workers, Keys, Rates) = (workload, workers, keys, [.. points.Select(static point => point.Rps)]);

    public string Workload { get; }

    public int Workers { get; }

    public int Keys { get; }

    public IReadOnlyList<double> Rates { get; }
}

/// <summary>A point, and how many nodes stored a state meanwhile.</summary>
internal sealed record FlushPoint : ScalePoint
{
    public FlushPoint(ScalePoint point, int flushed)
        : base(point) => Flushed = flushed;

    public int Flushed { get; }
}
