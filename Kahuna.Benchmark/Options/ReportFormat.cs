namespace Kahuna.Benchmark.Options;

/// <summary>How the report is written.</summary>
internal enum ReportFormat
{
    Console,
    Json,
    Csv,
}
