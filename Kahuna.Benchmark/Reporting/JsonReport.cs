using System.Text.Encodings.Web;
using System.Text.Json;
using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Recording;
using Kahuna.Benchmark.Running;
using Kahuna.Benchmark.Targets;

namespace Kahuna.Benchmark.Reporting;

/// <summary>
/// The JSON form. Names and order are an interface: new fields only go behind the existing ones of their object.
/// Static, any thread.
/// </summary>
internal static class JsonReport
{
    private static readonly JsonWriterOptions s_layout =
        new() { Indented = true, NewLine = "\n", Encoder = JavaScriptEncoder.UnsafeRelaxedJsonEscaping };

    public static void Write(Stream stream, BenchReport report)
    {
        using (Utf8JsonWriter json = new(stream, s_layout))
        {
            json.WriteStartObject();
            WriteParameters(json, report);
            json.WriteNumber("elapsedSec", Round(report.Result.ElapsedSec));
            json.WriteStartArray("operations");
            foreach (ReportRow row in report.Rows)
            {
                WriteRow(json, row);
            }

            json.WriteEndArray();
            json.WritePropertyName("aggregate");
            WriteRow(json, report.Aggregate);
            WriteMode(json, report);
            WriteGenerator(json, report);
            WriteFailures(json, report);
            WriteVerified(json, report);
            WriteHistograms(json, report);
            json.WriteEndObject();
        }

        stream.WriteByte((byte)'\n');
    }

    private static void WriteParameters(Utf8JsonWriter json, BenchReport report)
    {
        BenchOptions options = report.Options;
        json.WriteStartObject("parameters");
        json.WriteString("workload", options.Workload);
        json.WriteNumber("duration", options.Duration.TotalSeconds);
        json.WriteNumber("warmup", options.Warmup.TotalSeconds);
        json.WriteNumber("concurrency", options.Concurrency);
        json.WriteNumber("rate", options.Rate);
        json.WriteNumber("keySpace", options.KeySpace);
        json.WriteNumber("valueSize", options.ValueSize);
        json.WriteString("durability", options.Durability);
        json.WriteStartArray("endpoints");
        foreach (string endpoint in report.Description.Endpoints)
        {
            json.WriteStringValue(endpoint);
        }

        json.WriteEndArray();
        json.WriteNumber("seed", options.Seed);
        json.WriteNumber("timeout", options.Timeout.TotalSeconds);
        json.WriteNumber("readPct", options.ReadPct);
        json.WriteString("script", options.Script);
        json.WriteBoolean("insecure", options.IsInsecure);
        json.WriteString("connectionSource", options.Source.Text);
        json.WriteString("target", TargetNames.Of(options.Target));
        json.WriteNumber("connections", options.Connections);
        json.WriteString("format", options.Format.ToString().ToLowerInvariant());
        json.WriteString("output", options.Output);
        json.WriteString("hlog", options.HistogramLog);
        json.WriteNumber("buckets", options.Buckets);
        json.WriteNumber("seedKeys", options.SeedKeys);
        json.WriteBoolean("verify", options.IsVerified);
        json.WriteString("toolVersion", ToolVersion.Text);
        json.WriteString("server", report.Description.Server);
        json.WriteString("serverVersion", report.Description.ServerVersion);
        json.WriteString("serverStore", report.Description.Store);
        json.WriteNumber("connectTimeout", options.ConnectTimeout.TotalSeconds);
        if (options.MaxErrors is { } maxErrors)
        {
            json.WriteNumber("maxErrors", maxErrors);
        }
        else
        {
            json.WriteNull("maxErrors");
        }

        WriteMachine(json, report.Machine);
        if (options.ScriptText is { } script)
        {
            json.WriteString("scriptText", script);
        }

        foreach ((WorkloadOption option, int value) in options.OfWorkload)
        {
            json.WriteNumber(option.ReportName, value);
        }

        json.WriteEndObject();
    }

    private static void WriteVerified(Utf8JsonWriter json, BenchReport report)
    {
        if (report.Verified is not { } verified)
        {
            return;
        }

        json.WriteStartObject("verified");
        json.WriteBoolean("good", verified.IsGood);
        foreach ((string name, long count) in verified.Counts)
        {
            json.WriteNumber(name, count);
        }

        json.WriteEndObject();
    }

    private static void WriteMachine(Utf8JsonWriter json, MachineDescription machine)
    {
        json.WriteStartObject("machine");
        json.WriteString("os", machine.Os);
        json.WriteString("architecture", machine.Architecture);
        json.WriteString("cpu", machine.Cpu);
        json.WriteNumber("cores", machine.Cores);
        json.WriteNumber("memoryBytes", machine.MemoryBytes);
        json.WriteString("runtime", machine.Runtime);
        json.WriteEndObject();
    }

    private static void WriteRow(Utf8JsonWriter json, ReportRow row)
    {
        json.WriteStartObject();
        json.WriteString("operation", row.Operation);
        json.WriteNumber("count", row.Count);
        json.WriteNumber("rps", row.Rps);
        json.WriteNumber("p50Ms", row.P50Ms);
        json.WriteNumber("p90Ms", row.P90Ms);
        json.WriteNumber("p95Ms", row.P95Ms);
        json.WriteNumber("p99Ms", row.P99Ms);
        json.WriteNumber("p999Ms", row.P999Ms);
        json.WriteNumber("maxMs", row.MaxMs);
        json.WriteNumber("meanMs", row.MeanMs);
        json.WriteNumber("errors", row.Errors);
        json.WriteNumber("timeouts", row.Timeouts);
        json.WriteNumber("misses", row.Misses);
        json.WriteEndObject();
    }

    private static void WriteMode(Utf8JsonWriter json, BenchReport report)
    {
        json.WriteStartObject("mode");
        json.WriteString("name", report.ModeName);
        json.WriteNumber(
            "nodes",
            report.Options.Source.EmbeddedNodes > 0
                ? report.Options.Source.EmbeddedNodes
                : report.Description.Endpoints.Count);
        json.WriteString("load", report.Options.Rate > 0 ? "open" : "closed");
        json.WriteBoolean("interrupted", report.Result.IsInterrupted);
        json.WriteString("startedAt", report.StartedAt.UtcDateTime);
        json.WriteEndObject();
    }

    private static void WriteGenerator(Utf8JsonWriter json, BenchReport report)
    {
        LoadResult result = report.Result;
        GeneratorUse use = result.Use;
        json.WriteStartObject("generator");
        json.WriteNumber("targetRate", report.Options.Rate);
        json.WriteNumber("achievedRate", Round(report.AchievedRate));
        json.WriteNumber("requests", result.Released);
        json.WriteNumber("finished", result.Recorded);
        json.WriteNumber("backlog", result.NotSent + result.Unanswered);
        json.WriteNumber("notSent", result.NotSent);
        json.WriteNumber("unanswered", result.Unanswered);
        json.WriteNumber("drainSec", Round(result.DrainSec));
        WriteLag(json, result.PacerLag);
        json.WriteNumber("wakeLagP99Ms", Round(use.WakeLagP99Ms));
        json.WriteNumber("wakeLagMaxMs", Round(use.WakeLagMaxMs));
        json.WriteNumber("processCpuPct", Round(use.ProcessCpuPct));
        if (use.MachineCpuPct is { } machine)
        {
            json.WriteNumber("machineCpuPct", Round(machine));
        }
        else
        {
            json.WriteNull("machineCpuPct");
        }

        json.WriteNumber("gcCount", use.Collections);
        json.WriteNumber("gcPauseTotalMs", Round(use.PauseTotalMs));
        json.WriteNumber("gcPauseMaxMs", Round(use.PauseMaxMs));
        json.WriteNumber(
            "allocatedBytesPerRequest", result.Recorded == 0 ? 0 : Round((double)use.AllocatedBytes / result.Recorded));
        json.WriteStartArray("findings");
        foreach (string finding in report.Findings)
        {
            json.WriteStringValue(finding);
        }

        json.WriteEndArray();
        json.WriteEndObject();
    }

    private static void WriteLag(Utf8JsonWriter json, LatencyHistogram? lag)
    {
        if (lag is null)
        {
            json.WriteNull("scheduleLagMs");
            return;
        }

        json.WriteStartObject("scheduleLagMs");
        json.WriteNumber("p50", lag.ValueAtPercentile(50) / 1000.0);
        json.WriteNumber("p99", lag.ValueAtPercentile(99) / 1000.0);
        json.WriteNumber("max", lag.Max / 1000.0);
        json.WriteEndObject();
    }

    private static void WriteFailures(Utf8JsonWriter json, BenchReport report)
    {
        json.WriteStartArray("failures");
        foreach ((string message, long count) in report.Failures)
        {
            json.WriteStartObject();
            json.WriteString("message", message);
            json.WriteNumber("count", count);
            json.WriteEndObject();
        }

        json.WriteEndArray();
    }

    private static void WriteHistograms(Utf8JsonWriter json, BenchReport report)
    {
        json.WriteStartArray("histograms");
        foreach (OperationTotal total in report.Totals.Append(report.AggregateTotal))
        {
            json.WriteStartObject();
            json.WriteString("operation", total.Name);
            json.WriteString("unit", "us");
            json.WriteString("encoding", "HdrHistogram V2, zlib, base64");
            json.WriteString("data", total.Latencies.ToBase64());
            json.WriteEndObject();
        }

        json.WriteEndArray();
    }

    private static double Round(double value) => Math.Round(value, 3, MidpointRounding.AwayFromZero);
}
