using System.Globalization;

namespace Kahuna.Benchmark.Recording;

/// <summary>
/// Writes the text format of histogram logs (version 1.3), one tagged line per histogram. In UTF-8: the package's
/// writer writes UTF-16, which other readers of such logs do not take. Static, any thread.
/// </summary>
internal static class HistogramLog
{
    /// <summary>Writes the header and one line per histogram; all lines cover the same interval.</summary>
    public static void Write(
        TextWriter writer,
        DateTimeOffset start,
        double elapsedSec,
        IEnumerable<(string Tag, LatencyHistogram Histogram)> rows)
    {
        CultureInfo invariant = CultureInfo.InvariantCulture;
        string startSec = (start.ToUnixTimeMilliseconds() / 1000.0).ToString("F3", invariant);
        writer.Write("#[Histogram log format version 1.3]\n");
        writer.Write("#[Logged with kahuna-bench; values in microseconds, Interval_Max in milliseconds]\n");
        writer.Write(
            $"#[StartTime: {startSec} (seconds since epoch), "
                + $"{start.UtcDateTime.ToString("ddd MMM dd HH:mm:ss 'UTC' yyyy", invariant)}]\n");
        writer.Write("\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n");
        foreach ((string tag, LatencyHistogram histogram) in rows)
        {
            string length = elapsedSec.ToString("F3", invariant);
            string max = (histogram.Max / 1000.0).ToString("F3", invariant);
            writer.Write($"Tag={tag},0.000,{length},{max},{histogram.ToBase64()}\n");
        }
    }
}
