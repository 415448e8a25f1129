using System.Globalization;
using System.Text.Json;
using System.Text.RegularExpressions;

namespace Kahuna.Tests.Benchmark;

/// <summary>
/// What scripts and dashboards may rely on: options with their defaults, and the fields of the three reports in their
/// order. New ones may only follow. Written down a second time here, so that no change of the tool changes both.
/// Stateless; any thread.
/// </summary>
internal static partial class BenchContract
{
    /// <summary>The options, with the defaults that the help names; null: the help names none.</summary>
    public static readonly (string Name, string? Default)[] Options =
    [
        ("-c, --connection-source", null),
        ("--workload", "mixed"),
        ("--duration", "30"),
        ("--warmup", "5"),
        ("--concurrency", "64"),
        ("--rate", "0"),
        ("--key-space", "10000"),
        ("--value-size", "128"),
        ("--read-pct", "50"),
        ("--durability", "persistent"),
        ("--script", null),
        ("--timeout", "10"),
        ("--format", "console"),
        ("--output", "standard output"),
        ("--insecure", null),
        ("--seed", "0"),
        ("--target", "kahuna"),
    ];

    /// <summary>The workloads that have to be there.</summary>
    public static readonly string[] Workloads = ["set", "get", "mixed", "lock", "sequence", "script"];

    public static readonly string[] ConsoleColumns =
        ["Operation", "Count", "req/s", "p50", "p90", "p95", "p99", "p99.9", "max", "mean", "errors", "misses"];

    public static readonly string[] JsonSections = ["parameters", "elapsedSec", "operations", "aggregate"];

    public static readonly string[] JsonParameters =
    [
        "workload", "duration", "warmup", "concurrency", "rate", "keySpace", "valueSize", "durability", "endpoints",
        "seed", "timeout",
    ];

    /// <summary>Parameters that a run cannot be repeated without; they follow in any order.</summary>
    public static readonly string[] JsonOtherParameters =
        ["readPct", "script", "insecure", "toolVersion", "serverVersion", "machine"];

    public static readonly string[] JsonRow =
    [
        "operation", "count", "rps", "p50Ms", "p90Ms", "p95Ms", "p99Ms", "p999Ms", "maxMs", "meanMs", "errors",
        "timeouts", "misses",
    ];

    public const string CsvHeader =
        "Operation,Count,Rps,P50Ms,P90Ms,P95Ms,P99Ms,P999Ms,MaxMs,MeanMs,Errors,Timeouts,Misses";

    /// <summary>Checks the text of <c>--help</c>.</summary>
    public static void CheckHelp(string help)
    {
        Dictionary<string, string> lines = help.Split('\n')
            .Where(static line => line.StartsWith("  -", StringComparison.Ordinal))
            .ToDictionary(static line => OptionName().Match(line).Groups[1].Value, StringComparer.Ordinal);
        foreach ((string name, string? value) in Options)
        {
            Assert.True(lines.TryGetValue(name, out string? line), $"{name} is not in the help:\n{help}");
            if (value is not null)
            {
                Assert.EndsWith($"[default: {value}]", line.TrimEnd(), StringComparison.Ordinal);
            }
        }

        string workloads = lines["--workload"];
        Assert.All(Workloads, name => Assert.Matches($@"\b{name}\b", workloads));
        Assert.Contains("--version", lines.Keys);
    }

    /// <summary>Checks the lines for people, from the first header line to the table.</summary>
    public static void CheckConsole(string text)
    {
        string[] lines = text.ReplaceLineEndings("\n").Split('\n');
        Assert.Matches(
            @"^Kahuna Benchmark — [a-z]+, [\d.]+s \+ [\d.]+s warmup, concurrency=\d+, target=(unbounded|\d+ req/s)$",
            lines[0]);
        Assert.Matches("^endpoints : .+$", lines[1]);
        Assert.Matches(@"^tls       : (enabled|disabled \((localhost|--insecure)\)|none \(.+\))$", lines[2]);
        Assert.Matches(
            @"^key-space : \d+   value-size : \d+B   durability : (persistent|ephemeral)$", lines[3]);
        int at = 4;
        string workload = lines[0].Split(' ', ',')[3];
        if (workload is "get" or "mixed")
        {
            Find("^Seeding key-space…$");
            Find(@"^  Seeding [\d,]+ keys \(parallelism=\d+\)…$");
        }

        if (!lines[0].Contains(" + 0s warmup", StringComparison.Ordinal))
        {
            Find(@"^Warming up for [\d.]+s…$");
        }

        Find(@"^Running measurement for [\d.]+s…$");
        Find("^$");
        string[] columns = Words(lines[at]);
        Assert.Equal(ConsoleColumns, columns[..Math.Min(ConsoleColumns.Length, columns.Length)]);
        List<string> rows = [];
        while (++at < lines.Length && lines[at].Length > 0)
        {
            string[] cells = Words(lines[at]);
            Assert.Equal(columns.Length, cells.Length);
            Assert.All(cells[1..3].Concat(cells[10..]), static cell => Assert.Matches(@"^[\d,]+$", cell));
            Assert.All(cells[3..10], static cell => Assert.Matches(@"^(-|\d+\.\d{3}ms)$", cell));
            rows.Add(cells[0]);
        }

        CheckRows(workload, rows);

        // Further lines may stand between those of the contract.
        void Find(string pattern)
        {
            while (at < lines.Length && !Regex.IsMatch(lines[at], pattern))
            {
                at++;
            }

            Assert.True(at++ < lines.Length, $"No line, or one in another place, matches {pattern}:\n{text}");
        }
    }

    /// <summary>Checks a JSON report.</summary>
    public static void CheckJson(string text)
    {
        using JsonDocument document = JsonDocument.Parse(text);
        JsonElement root = document.RootElement;
        RequireBeginning(JsonSections, root);
        JsonElement parameters = root.GetProperty("parameters");
        RequireBeginning(JsonParameters, parameters);
        Assert.Subset(NamesOf(parameters).ToHashSet(), JsonOtherParameters.ToHashSet());
        Assert.Equal(JsonValueKind.Array, parameters.GetProperty("endpoints").ValueKind);
        Assert.True(root.GetProperty("elapsedSec").GetDouble() > 0);
        JsonElement[] rows = [.. root.GetProperty("operations").EnumerateArray()];
        JsonElement aggregate = root.GetProperty("aggregate");
        foreach (JsonElement row in rows.Append(aggregate))
        {
            RequireBeginning(JsonRow, row);
            Assert.All(JsonRow[1..], name => Assert.Equal(JsonValueKind.Number, row.GetProperty(name).ValueKind));
        }

        CheckRows(
            parameters.GetProperty("workload").GetString()!,
            [.. rows.Append(aggregate).Select(static row => row.GetProperty("operation").GetString()!)]);
        foreach (string name in (string[])["count", "errors", "timeouts", "misses"])
        {
            Assert.Equal(
                rows.Sum(row => row.GetProperty(name).GetInt64()), aggregate.GetProperty(name).GetInt64());
        }
    }

    /// <summary>Checks a CSV report.</summary>
    public static void CheckCsv(string workload, string text)
    {
        string[] lines = text.ReplaceLineEndings("\n").TrimEnd('\n').Split('\n');
        string[] header = CsvHeader.Split(',');
        Assert.Equal(header, lines[0].Split(',').Take(header.Length));
        foreach (string line in lines[1..])
        {
            string[] cells = line.Split(',');
            Assert.Equal(lines[0].Split(',').Length, cells.Length);
            Assert.All(cells[1..], static cell => Assert.True(double.TryParse(
                cell, NumberStyles.AllowDecimalPoint, CultureInfo.InvariantCulture, out _), cell));
        }

        CheckRows(workload, [.. lines[1..].Select(static line => line.Split(',')[0])]);
    }

    /// <summary>A row for each operation, and the total as the last one.</summary>
    private static void CheckRows(string workload, IReadOnlyList<string> rows) =>
        Assert.Equal(workload == "mixed" ? ["get", "set", "TOTAL"] : [workload, "TOTAL"], rows);

    private static void RequireBeginning(string[] expected, JsonElement found) =>
        Assert.Equal(expected, NamesOf(found).Take(expected.Length));

    private static IEnumerable<string> NamesOf(JsonElement found) =>
        found.EnumerateObject().Select(static field => field.Name);

    private static string[] Words(string line) => line.Split(' ', StringSplitOptions.RemoveEmptyEntries);

    [GeneratedRegex(@"^  ((?:-c, )?--[a-z-]+|-\?, -h, --help)")]
    private static partial Regex OptionName();
}
