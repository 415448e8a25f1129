using System.Globalization;

namespace Kahuna.Benchmark.Reporting;

/// <summary>The CSV form: one line per operation, the last one is the total. Static, any thread.</summary>
internal static class CsvReport
{
    public const string Header =
        "Operation,Count,Rps,P50Ms,P90Ms,P95Ms,P99Ms,P999Ms,MaxMs,MeanMs,Errors,Timeouts,Misses";

    public static void Write(TextWriter writer, BenchReport report)
    {
        writer.Write(Header + "\n");
        foreach (ReportRow row in report.Rows.Append(report.Aggregate))
        {
            string line = string.Create(
                CultureInfo.InvariantCulture,
                $"{row.Operation},{row.Count},{row.Rps:F3},"
                + $"{row.P50Ms:F3},{row.P90Ms:F3},{row.P95Ms:F3},{row.P99Ms:F3},{row.P999Ms:F3},"
                + $"{row.MaxMs:F3},{row.MeanMs:F3},{row.Errors},{row.Timeouts},{row.Misses}\n");
            writer.Write(line);
        }
    }
}
