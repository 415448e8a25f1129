using System.Globalization;
using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Running;
using Kahuna.Benchmark.Targets;

namespace Kahuna.Benchmark.Reporting;

/// <summary>
/// The lines for people: header, phases and table. Owned by the run; writes to standard output, or to standard error
/// when that carries the report.
/// </summary>
internal sealed class ConsoleReport(TextWriter writer, BenchOptions options)
{
    private static readonly string[] s_columns =
        ["Operation", "Count", "req/s", "p50", "p90", "p95", "p99", "p99.9", "max", "mean", "errors", "misses"];

    public void WriteHeader(TargetDescription description)
    {
        string rate = options.Rate == 0 ? "unbounded" : Text($"{options.Rate} req/s");
        string span = $"{Seconds(options.Duration)} + {Seconds(options.Warmup)} warmup";
        Line($"Kahuna Benchmark — {options.Workload}, {span}, concurrency={options.Concurrency}, target={rate}");
        Line($"endpoints : {string.Join(',', description.Endpoints)}");
        Line($"tls       : {TlsText}");
        Line($"key-space : {options.KeySpace}   value-size : {options.ValueSize}B   durability : {options.Durability}");
        if (options.Target != TargetKind.Kahuna)
        {
            Line($"system    : {description.Server} {description.ServerVersion}");
        }

        if (options.Source.EmbeddedNodes > 0)
        {
            int nodes = options.Source.EmbeddedNodes;
            Line($"mode      : embedded, {nodes} {(nodes == 1 ? "node" : "nodes")} in this process");
        }
    }

    public void WriteSeeding(Seeding seeding)
    {
        Line($"Seeding key-space…");
        Line($"  Seeding {seeding.Keys:N0} keys (parallelism={seeding.Writers})…");
    }

    public void WriteWarmup() => Line($"Warming up for {Seconds(options.Warmup)}…");

    public void WriteMeasurement() => Line($"Running measurement for {Seconds(options.Duration)}…");

    public void WriteTable(BenchReport report)
    {
        List<string[]> lines = [s_columns];
        lines.AddRange(report.Rows.Append(report.Aggregate).Select(Cells));
        int[] widths = [.. s_columns.Select((_, column) => lines.Max(line => line[column].Length))];
        writer.WriteLine();
        foreach (string[] line in lines)
        {
            IEnumerable<string> cells = line.Select(
                (cell, column) => column == 0 ? cell.PadRight(widths[column]) : cell.PadLeft(widths[column]));
            writer.WriteLine(string.Join("   ", cells).TrimEnd());
        }

        if (report.Verified is { } verified)
        {
            writer.WriteLine();
            Line($"{verified}");
        }

        WriteFindings(report);
        writer.Flush();
    }

    private void WriteFindings(BenchReport report)
    {
        if (report.Findings.Count + report.Failures.Count > 0)
        {
            writer.WriteLine();
        }

        foreach (string finding in report.Findings)
        {
            writer.WriteLine($"note: {finding}");
        }

        foreach ((string message, long count) in report.Failures)
        {
            Line($"failed {count:N0} times: {message}");
        }
    }

    private string TlsText => options switch
    {
        { Target: not TargetKind.Kahuna } => $"none ({TargetNames.Of(options.Target)} is driven without TLS)",
        { IsInsecureAsked: true } => "disabled (--insecure)",
        { IsInsecure: true } => "disabled (localhost)",
        _ => "enabled",
    };

    private static string[] Cells(ReportRow row) =>
    [
        row.Operation,
        Text($"{row.Count:N0}"),
        Text($"{row.Rps:N0}"),
        Latency(row, row.P50Ms),
        Latency(row, row.P90Ms),
        Latency(row, row.P95Ms),
        Latency(row, row.P99Ms),
        Latency(row, row.P999Ms),
        Latency(row, row.MaxMs),
        Latency(row, row.MeanMs),
        Text($"{row.Errors + row.Timeouts:N0}"),
        Text($"{row.Misses:N0}"),
    ];

    /// <summary>No success has no latency: a zero would look like a very good one.</summary>
    private static string Latency(ReportRow row, double milliseconds) =>
        row.Count == 0 ? "-" : Text($"{milliseconds:F3}ms");

    private static string Seconds(TimeSpan span) => Text($"{span.TotalSeconds:G}s");

    private void Line(FormattableString text)
    {
        writer.WriteLine(Text(text));
        writer.Flush();
    }

    private static string Text(FormattableString text) => text.ToString(CultureInfo.InvariantCulture);
}
