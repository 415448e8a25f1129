using System.Globalization;
using System.Text;
using System.Text.Json;
using System.Text.Json.Nodes;
using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Recording;
using Kahuna.Benchmark.Reporting;
using Kahuna.Benchmark.Running;
using Kahuna.Benchmark.Targets;
using Kahuna.Tests.Wire;

namespace Kahuna.Tests.Benchmark;

/// <summary>
/// The three forms of a report, of a run that never was, against golden files: names and order are an interface.
/// </summary>
public sealed class ReportTests
{
    [Theory]
    [InlineData("")]
    [InlineData("de-DE")]
    public void Json_has_the_fields_of_the_contract_in_their_order(string culture)
    {
        string text = InCulture(culture, () =>
        {
            using MemoryStream stream = new();
            JsonReport.Write(stream, Report(CreateOptions("--format json --hlog a.hlog")));
            return Encoding.UTF8.GetString(stream.ToArray());
        });
        JsonNode root = JsonNode.Parse(text)!;
        foreach (JsonNode? histogram in root["histograms"]!.AsArray())
        {
            // Compressors may differ between machines: what is in the text is tested by reading it back.
            HdrHistogram.HistogramBase decoded = LatencyHistogramTests.Decode((string)histogram!["data"]!);
            Assert.Equal(
                (string)histogram["operation"]! == "TOTAL" ? 1003 : (string)histogram["operation"]! == "get" ? 1000 : 3,
                decoded.TotalCount);
            text = text.Replace((string)histogram["data"]!, "…", StringComparison.Ordinal);
        }

        string version = $"\"toolVersion\": \"{ToolVersion.Text}\"";
        text = text.Replace(version, "\"toolVersion\": \"…\"", StringComparison.Ordinal);
        GoldenFile.Check("Benchmark/report.json", text);
    }

    [Theory]
    [InlineData("")]
    [InlineData("de-DE")]
    [InlineData("fr-FR")]
    public void Csv_is_the_same_under_every_culture(string culture)
    {
        string text = InCulture(culture, () =>
        {
            using StringWriter writer = new();
            CsvReport.Write(writer, Report(CreateOptions("--format csv")));
            return writer.ToString();
        });
        Assert.StartsWith(
            "Operation,Count,Rps,P50Ms,P90Ms,P95Ms,P99Ms,P999Ms,MaxMs,MeanMs,Errors,Timeouts,Misses\n",
            text,
            StringComparison.Ordinal);
        GoldenFile.Check("Benchmark/report.csv", text);
    }

    [Theory]
    [InlineData("")]
    [InlineData("de-DE")]
    public void Console_is_the_same_under_every_culture(string culture)
    {
        string text = InCulture(culture, () =>
        {
            BenchOptions options = CreateOptions(string.Empty);
            using StringWriter writer = new() { NewLine = "\n" };
            ConsoleReport lines = new(writer, options);
            BenchReport report = Report(options);
            lines.WriteHeader(report.Description);
            lines.WriteWarmup();
            lines.WriteMeasurement();
            lines.WriteTable(report);
            return writer.ToString();
        });
        GoldenFile.Check("Benchmark/report.txt", text);
    }

    [Fact]
    public void Console_counts_timeouts_among_the_errors()
    {
        BenchReport report = Report(CreateOptions(string.Empty));
        Assert.Equal(7, report.Aggregate.Errors);
        Assert.Equal(3, report.Aggregate.Timeouts);
        using StringWriter writer = new();
        new ConsoleReport(writer, report.Options).WriteTable(report);
        Assert.Matches(@"TOTAL .* 10 +9\r?\n", writer.ToString());
    }

    [Fact]
    public void Json_of_an_empty_run_has_zeros()
    {
        LoadResult empty = Result() with
        {
            Rows = [new OperationTotal("set", new LatencyHistogram(), 0, 0, 0)],
            ElapsedSec = 0,
            Use = new GeneratorUse(),
            Recorded = 0,
            IsInterrupted = true,
        };
        using MemoryStream stream = new();
        JsonReport.Write(stream, new BenchReport(CreateOptions(string.Empty), Description(), empty));
        JsonElement row = JsonDocument.Parse(stream.ToArray()).RootElement.GetProperty("aggregate");
        Assert.All(row.EnumerateObject().Skip(1), property => Assert.Equal(0, property.Value.GetDouble()));
    }

    [Theory]
    [InlineData(180, 99, false, "bottleneck: this process used 90 %")]
    [InlineData(40, 99, false, "CPU of this machine was saturated (99 % busy, 20 % by this process)")]
    [InlineData(40, 60, true, "garbage collection stopped this process")]
    public void Generator_says_when_it_limits_the_result(
        double processCpu, double machineCpu, bool pauses, string expected)
    {
        GeneratorUse use = new()
        {
            Seconds = 10,
            ProcessCpuPct = processCpu,
            MachineCpuPct = machineCpu,
            PauseMaxMs = pauses ? 25 : 0,
            PauseTotalMs = pauses ? 30 : 0,
        };
        BenchReport report = new(CreateOptions(string.Empty), Description(), Result() with { Use = use })
        {
            Machine = Machine(),
        };
        string finding = Assert.Single(GeneratorFindings.Of(report));
        Assert.Contains(expected, finding, StringComparison.Ordinal);
    }

    [Fact]
    public void Clean_run_has_no_findings() =>
        Assert.Empty(GeneratorFindings.Of(
            new BenchReport(CreateOptions(string.Empty), Description(), Result()) { Machine = Machine() }));

    private static BenchReport Report(BenchOptions options) => new(options, Description(), Result())
    {
        Machine = Machine(),
        StartedAt = new DateTimeOffset(2026, 1, 2, 3, 4, 5, TimeSpan.Zero),
        Failures = [("The request timed out.", 3)],
    };

    private static TargetDescription Description() => new("kahuna", "0.1.0", ["https://a:8082", "https://b:8084"]) { Store = "rocksdb" };

    private static MachineDescription Machine() => new("Linux", "X64", "A processor", 2, 1 << 30, ".NET 10.0");

    private static LoadResult Result()
    {
        LatencyHistogram gets = new();
        for (int i = 1; i <= 1000; i++)
        {
            gets.Record(i);
        }

        LatencyHistogram sets = new();
        sets.Record(1500, 2);
        sets.Record(2_000_123);
        return new LoadResult
        {
            ElapsedSec = 2.5,
            DrainSec = 0.5,
            Rows = [new OperationTotal("get", gets, 4, 1, 9), new OperationTotal("set", sets, 3, 2, 0)],
            Use = new GeneratorUse
            {
                Seconds = 2,
                ProcessCpuPct = 42.5,
                MachineCpuPct = 61.25,
                Collections = 3,
                PauseTotalMs = 1.5,
                PauseMaxMs = 0.75,
                AllocatedBytes = 102_200,
                WakeLagP99Ms = 0.125,
                WakeLagMaxMs = 0.5,
            },
            Released = 1022,
            Recorded = 1022,
            NotSent = 0,
            Unanswered = 0,
            PacerLag = null,
            IsInterrupted = false,
        };
    }

    private static BenchOptions CreateOptions(string arguments) =>
        BenchLine.Read($"-c https://a:8082,https://b:8084 --duration 2 --warmup 0.5 --seed 42 {arguments}").Options;

    private static string InCulture(string name, Func<string> compose)
    {
        CultureInfo before = CultureInfo.CurrentCulture;
        try
        {
            CultureInfo.CurrentCulture = CultureInfo.GetCultureInfo(name);
            return compose();
        }
        finally
        {
            CultureInfo.CurrentCulture = before;
        }
    }
}
