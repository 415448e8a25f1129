using System.CommandLine;
using System.Globalization;
using Kahuna.Benchmark.Targets;
using Kahuna.Benchmark.Workloads;
using Kahuna.Client.Wire;

namespace Kahuna.Benchmark.Options;

/// <summary>
/// Checks a parsed command line, option by option, and stops at the first that is wrong with a sentence that names option and value. Used once.
/// </summary>
internal sealed class OptionReader(OptionTable table, ParseResult parsed)
{
    /// <summary>One day: longer runs belong into a loop of runs.</summary>
    private const double SecondsMax = 86_400;

    /// <summary>The longest timeout that the client accepts.</summary>
    private const double TimeoutSecondsMax = Limits.CommandWaitMsMax / 1000.0;

    /// <summary>A memory of a few kilobytes per worker is kept; far more workers than any client has.</summary>
    private const int ConcurrencyMax = 100_000;

    /// <summary>Above what one process can send; keeps a typing mistake from filling memory with a backlog.</summary>
    private const int RateMax = 10_000_000;
    private const int KeySpaceMax = 1_000_000_000;
    private const int ConnectionsMax = 10_000;

    private static readonly string[] s_unavailableWorkloads = ["script"];

    /// <summary>The options, or an <see cref="OptionException"/>.</summary>
    public BenchOptions Read()
    {
        if (parsed.Errors.Count > 0)
        {
            throw new OptionException(parsed.Errors[0].Message);
        }

        TargetKind target = ReadTarget();
        BenchOptions options = new()
        {
            Target = target,
            Source = ReadSource(target),
            Workload = ReadWorkload(),
            Duration = ReadSeconds(table.Duration, isZeroAllowed: false, SecondsMax),
            Warmup = ReadSeconds(table.Warmup, isZeroAllowed: true, SecondsMax),
            Concurrency = ReadNumber(table.Concurrency, 1, ConcurrencyMax),
            Rate = ReadNumber(table.Rate, 0, RateMax),
            KeySpace = ReadNumber(table.KeySpace, 1, KeySpaceMax),
            ValueSize = ReadNumber(table.ValueSize, 0, Limits.ValueBytesCeiling),
            ReadPct = ReadNumber(table.ReadPct, 0, 100),
            Durability = ReadDurability(target),
            Timeout = ReadSeconds(table.Timeout, isZeroAllowed: false, TimeoutSecondsMax),
            Format = ReadFormat(),
            Output = ReadPath(table.Output),
            IsInsecureAsked = parsed.GetValue(table.Insecure),
            Seed = ReadSeed(),
            Connections = ReadNumber(table.Connections, 0, ConnectionsMax),
            HistogramLog = ReadPath(table.HistogramLog),
            Buckets = ReadNumber(table.Buckets, 0, KeySpaceMax),
            IsVerified = parsed.GetValue(table.Verify),
            MaxErrors = parsed.GetValue(table.MaxErrors) is null ? null : ReadNumber(table.MaxErrors, 0, int.MaxValue),
            ConnectTimeout = ReadSeconds(table.ConnectTimeout, isZeroAllowed: false, TimeoutSecondsMax),
            SeedKeysAsked = parsed.GetValue(table.SeedKeys) is null ? null : ReadNumber(table.SeedKeys, 0, KeySpaceMax),
        };
        RefuseContradictions(options);
        return options;
    }

    private void RefuseContradictions(BenchOptions options)
    {
        if (parsed.GetValue(table.Script) is not null)
        {
            throw new OptionException("--script needs --workload script, which this version does not have yet.");
        }

        if (options.SeedKeys > options.KeySpace)
        {
            throw new OptionException($"--seed-keys: there are only {options.KeySpace} keys (--key-space).");
        }

        if (options.Workload is WorkloadKind.Sequence or WorkloadKind.Lock or WorkloadKind.Handover && options.Target != TargetKind.Kahuna)
        {
            throw new OptionException($"--workload: '{options.Workload.ToString().ToLowerInvariant()}' is a workload of Kahuna; with another --target use set, get or mixed.");
        }

        if (options.Workload == WorkloadKind.Sequence && options.Durability == OptionTable.Ephemeral)
        {
            throw new OptionException("--durability: sequences are persistent only.");
        }

        if (options.IsVerified && options.Workload is not (WorkloadKind.Sequence or WorkloadKind.Lock))
        {
            throw new OptionException("--verify needs --workload lock or sequence.");
        }

        if (options.Output is not null && options.Format == ReportFormat.Console)
        {
            throw new OptionException("--output needs --format json or --format csv.");
        }
    }

    private TargetKind ReadTarget() => Text(table.Target) switch
    {
        "kahuna" => TargetKind.Kahuna,
        "etcd" => TargetKind.Etcd,
        "redis" => TargetKind.Redis,
        string other => throw Wrong(table.Target, other, "kahuna, etcd or redis"),
    };

    private ConnectionSource ReadSource(TargetKind target) =>
        ConnectionSource.Parse(Text(table.Source), target, out string? error) ?? throw new OptionException($"{table.Source.Name}: {error}");

    private WorkloadKind ReadWorkload()
    {
        string name = Text(table.Workload);
        if (s_unavailableWorkloads.Contains(name))
        {
            throw new OptionException($"--workload: '{name}' is not available in this version yet; use set, get, mixed, lock, handover or sequence.");
        }

        return name switch
        {
            "set" => WorkloadKind.Set,
            "get" => WorkloadKind.Get,
            "mixed" => WorkloadKind.Mixed,
            "sequence" => WorkloadKind.Sequence,
            "lock" => WorkloadKind.Lock,
            "handover" => WorkloadKind.Handover,
            _ => throw Wrong(table.Workload, name, "set, get, mixed, lock, handover or sequence"),
        };
    }

    private string ReadDurability(TargetKind target) => Text(table.Durability) switch
    {
        OptionTable.Persistent => OptionTable.Persistent,
        OptionTable.Ephemeral when target != TargetKind.Kahuna => throw new OptionException("--durability: 'ephemeral' is a level of Kahuna; with another --target use persistent."),
        OptionTable.Ephemeral => OptionTable.Ephemeral,
        string other => throw Wrong(table.Durability, other, "persistent or ephemeral"),
    };

    private ReportFormat ReadFormat() => Text(table.Format) switch
    {
        "console" => ReportFormat.Console,
        "json" => ReportFormat.Json,
        "csv" => ReportFormat.Csv,
        string other => throw Wrong(table.Format, other, "console, json or csv"),
    };

    private long ReadSeed()
    {
        string text = Text(table.Seed);
        if (!long.TryParse(text, NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture, out long seed))
        {
            throw Wrong(table.Seed, text, "a whole number");
        }

        // Below 2^53, so that a reader of the JSON report that knows only doubles gets the same number.
        return seed != 0 ? seed : 1 + (DateTime.UtcNow.Ticks & ((1L << 48) - 1));
    }

    private int ReadNumber(Option<string> option, int min, int max)
    {
        string text = Text(option);
        return int.TryParse(text, NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture, out int number) && number >= min && number <= max
            ? number
            : throw Wrong(option, text, string.Create(CultureInfo.InvariantCulture, $"a whole number from {min} to {max}"));
    }

    private TimeSpan ReadSeconds(Option<string> option, bool isZeroAllowed, double max)
    {
        string text = Text(option);
        bool isNumber = double.TryParse(text, NumberStyles.AllowDecimalPoint | NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture, out double seconds);

        // A millisecond is the smallest time that anything here can keep.
        return isNumber && seconds <= max && (seconds >= 0.001 || (isZeroAllowed && seconds == 0))
            ? TimeSpan.FromSeconds(seconds)
            : throw Wrong(option, text, string.Create(CultureInfo.InvariantCulture, $"a number of seconds {(isZeroAllowed ? "from 0" : "above 0")} to {max}"));
    }

    private string? ReadPath(Option<string> option)
    {
        string? path = parsed.GetValue(option);
        if (path is null)
        {
            return null;
        }

        string? folder = path.Length == 0 ? null : Path.GetDirectoryName(Path.GetFullPath(path));
        if (folder is null || !Directory.Exists(folder) || Directory.Exists(path))
        {
            throw Wrong(option, path, "a file in an existing folder");
        }

        return path;
    }

    private string Text(Option<string> option) => parsed.GetValue(option) ?? string.Empty;

    private static OptionException Wrong(Option<string> option, string value, string expected) =>
        new($"{option.Name}: '{value}' is not {expected}.");
}
