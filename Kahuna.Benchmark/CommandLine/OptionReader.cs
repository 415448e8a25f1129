using System.CommandLine;
using System.CommandLine.Parsing;
using System.Globalization;
using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Targets;
using Kahuna.Benchmark.Workloads;
using Kahuna.Wire;

namespace Kahuna.Benchmark.CommandLine;

/// <summary>
/// Checks a parsed command line, option by option, and stops at the first that is wrong with a sentence that names
/// option and value. Used once.
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

    /// <summary>What the command line asks for, or an <see cref="OptionException"/>.</summary>
    public BenchCommand Read()
    {
        if (parsed.Errors.Count > 0)
        {
            throw new OptionException(parsed.Errors[0].Message);
        }

        TargetKind target = ReadTarget();
        ConnectionSource source = ReadSource(target);
        Workload workload = ReadWorkload();
        CredentialReader credentials = new(table, parsed);
        BenchOptions options = new()
        {
            Target = target,
            Source = source,
            Workload = workload.Name,
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
            Credentials = credentials.Read(target, source),
            IsInsecureAsked = parsed.GetValue(table.Insecure),
            Seed = ReadSeed(),
            Connections = ReadNumber(table.Connections, 0, ConnectionsMax),
            HistogramLog = ReadPath(table.HistogramLog),
            Buckets = ReadNumber(table.Buckets, 0, KeySpaceMax),
            IsVerified = parsed.GetValue(table.Verify),
            MaxErrors = parsed.GetValue(table.MaxErrors) is null ? null : ReadNumber(table.MaxErrors, 0, int.MaxValue),
            ConnectTimeout = ReadSeconds(table.ConnectTimeout, isZeroAllowed: false, TimeoutSecondsMax),
            Script = parsed.GetValue(table.Script),
            ScriptText = ReadScript(workload),
            OfWorkload = workload.Options.ToDictionary(
                static option => option,
                option => ReadNumber(table.OfWorkloads[option], option.Min, option.Max)),
        };
        options = options with
        {
            SeedKeys = ReadSeedKeys() ?? workload.DefaultSeedKeys(options.KeySpace),
            Partitions = workload.PartitionsFor(options),
        };
        RefuseContradictions(workload, options);
        return new BenchCommand(workload, options, [.. credentials.Warnings()]);
    }

    private void RefuseContradictions(Workload workload, BenchOptions options)
    {
        if (options.SeedKeys > options.KeySpace)
        {
            throw new OptionException($"--seed-keys: there are only {options.KeySpace} keys (--key-space).");
        }

        if (!workload.IsServedBy(options.Target))
        {
            string others = NameList.Or(table.Workloads.Where(other => other.IsServedBy(options.Target)));
            string target = TargetNames.Of(options.Target);
            throw new OptionException(
                $"--workload: {target} has no '{workload.Name}'; with --target {target} use {others}.");
        }

        if (workload.Conflict(options) is { } conflict)
        {
            throw new OptionException(conflict);
        }

        if (options.IsVerified && workload.Promise is null)
        {
            throw Needs(table.Verify, NameList.Or(table.Workloads.Where(static other => other.Promise is not null)));
        }

        RefuseForeignOptions(workload);
        if (options.Output is not null && options.Format == ReportFormat.Console)
        {
            throw new OptionException("--output needs --format json or --format csv.");
        }
    }

    private void RefuseForeignOptions(Workload workload)
    {
        foreach ((WorkloadOption foreign, Option<string> option) in table.OfWorkloads)
        {
            if (!workload.Options.Contains(foreign) && parsed.GetResult(option) is OptionResult { Implicit: false })
            {
                throw Needs(option, NameList.Or(table.Workloads.Where(other => other.Options.Contains(foreign))));
            }
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
        ConnectionSource.Parse(Text(table.Source), target, out string? error)
            ?? throw new OptionException($"{table.Source.Name}: {error}");

    private Workload ReadWorkload()
    {
        string name = Text(table.Workload);
        string all = NameList.Or(table.Workloads);
        return table.Workloads.FirstOrDefault(workload => workload.Name == name)
            ?? throw Wrong(table.Workload, name, all);
    }

    /// <summary>The text of the file that <c>--script</c> names; null when it names none.</summary>
    private string? ReadScript(Workload workload)
    {
        if (parsed.GetValue(table.Script) is not { } path)
        {
            return null;
        }

        if (!workload.TakesScript)
        {
            throw Needs(table.Script, NameList.Or(table.Workloads.Where(static other => other.TakesScript)));
        }

        return ScriptFile.TryRead(path, out string text, out string? error)
            ? text
            : throw new OptionException($"{table.Script.Name}: '{path}' {error}.");
    }

    private int? ReadSeedKeys() =>
        parsed.GetValue(table.SeedKeys) is null ? null : ReadNumber(table.SeedKeys, 0, KeySpaceMax);

    private string ReadDurability(TargetKind target) => Text(table.Durability) switch
    {
        BenchOptions.Persistent => BenchOptions.Persistent,
        BenchOptions.Ephemeral when target != TargetKind.Kahuna => throw new OptionException(
            "--durability: 'ephemeral' is a level of Kahuna; with another --target use persistent."),
        BenchOptions.Ephemeral => BenchOptions.Ephemeral,
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
        return int.TryParse(text, NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture, out int number)
            && number >= min
            && number <= max
            ? number
            : throw Wrong(
                option, text, string.Create(CultureInfo.InvariantCulture, $"a whole number from {min} to {max}"));
    }

    private TimeSpan ReadSeconds(Option<string> option, bool isZeroAllowed, double max)
    {
        string text = Text(option);
        bool isNumber = double.TryParse(
            text,
            NumberStyles.AllowDecimalPoint | NumberStyles.AllowLeadingSign,
            CultureInfo.InvariantCulture,
            out double seconds);

        // A millisecond is the smallest time that anything here can keep.
        return isNumber && seconds <= max && (seconds >= 0.001 || (isZeroAllowed && seconds == 0))
            ? TimeSpan.FromSeconds(seconds)
            : throw Wrong(
                option,
                text,
                string.Create(
                    CultureInfo.InvariantCulture,
                    $"a number of seconds {(isZeroAllowed ? "from 0" : "above 0")} to {max}"));
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

    /// <summary>Only some workloads take the option.</summary>
    private static OptionException Needs(Option option, string workloads) =>
        new($"{option.Name} needs --workload {workloads}.");

    private static OptionException Wrong(Option<string> option, string value, string expected) =>
        new($"{option.Name}: '{value}' is not {expected}.");
}
