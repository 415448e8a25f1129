using System.Diagnostics.Metrics;
using System.Globalization;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting.Measurements;

/// <summary>
/// Durations that are counted elsewhere (<see cref="DurationHistogram"/>), to be written as a histogram or read as
/// counters. Immutable; any thread.
/// </summary>
/// <param name="Name">The name, with dots.</param>
/// <param name="Text">What they are.</param>
/// <param name="Read">Reads what was counted.</param>
internal sealed record HistogramSource(string Name, string Text, Func<IEnumerable<HistogramSeries>> Read)
{
    private static readonly string[] s_bounds =
    [
        .. Enumerable.Range(0, DurationHistogram.Bounds).Select(static place =>
            (DurationHistogram.BoundUs(place) / 1e6).ToString("0.######", CultureInfo.InvariantCulture)),
        "+Inf",
    ];

    /// <summary>The upper bounds in seconds, as Prometheus writes them; the last one has no limit.</summary>
    public static IReadOnlyList<string> Bounds => s_bounds;

    /// <summary>How many durations were at most as long as each bound.</summary>
    public IEnumerable<Measurement<long>> Buckets()
    {
        foreach (HistogramSeries series in Read())
        {
            long total = 0;
            for (int i = 0; i < s_bounds.Length; i++)
            {
                total += series.Counts[i];
                yield return new Measurement<long>(total, [.. series.Labels, new("le", s_bounds[i])]);
            }
        }
    }

    /// <summary>The sums in seconds.</summary>
    public IEnumerable<Measurement<double>> Sums()
    {
        foreach (HistogramSeries series in Read())
        {
            yield return new Measurement<double>(series.Seconds, series.Labels);
        }
    }
}

/// <summary>The durations of one combination of labels. A value.</summary>
/// <param name="Labels">The labels.</param>
/// <param name="Counts">How many durations each place has, the longest last; not cumulative.</param>
/// <param name="Seconds">The sum of the durations.</param>
internal readonly record struct HistogramSeries(
    KeyValuePair<string, object?>[] Labels, long[] Counts, double Seconds)
{
    /// <summary>What several histograms have counted together.</summary>
    public static HistogramSeries Of(
        KeyValuePair<string, object?>[] labels, IEnumerable<DurationHistogram> histograms)
    {
        long[] counts = new long[DurationHistogram.Bounds + 1];
        long sumUs = 0;
        foreach (DurationHistogram histogram in histograms)
        {
            histogram.AddTo(counts, ref sumUs);
        }

        return new HistogramSeries(labels, counts, sumUs / 1e6);
    }
}
