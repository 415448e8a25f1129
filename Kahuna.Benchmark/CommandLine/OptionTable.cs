using System.CommandLine;
using System.CommandLine.Help;
using System.CommandLine.Invocation;
using System.Globalization;
using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Workloads;

namespace Kahuna.Benchmark.CommandLine;

/// <summary>
/// The options as the command line shows them. All are read as text: <see cref="OptionReader"/> gives every value its
/// own check and its own sentence. Built once per run.
/// </summary>
internal sealed class OptionTable
{
    public OptionTable(IReadOnlyList<Workload> workloads)
    {
        Workloads = workloads;
        Workload = Create("--workload", "name", "mixed", NameList.Or(workloads));
        SeedKeys = CreateOptional("--seed-keys", "n", SeedKeysText(workloads));
        Verify = new("--verify") { Description = VerifyText(workloads) };
        Root = new RootCommand(
            "Sends sustained load to a Kahuna cluster through its client and reports what the client saw.")
        {
            Source,
            Workload,
            Duration,
            Warmup,
            Concurrency,
            Rate,
            KeySpace,
            ValueSize,
            ReadPct,
            Durability,
            Script,
            Timeout,
            Format,
            Output,
            Insecure, Seed, Target, Connections, HistogramLog, Buckets, SeedKeys, Verify, MaxErrors, ConnectTimeout,
            User, PasswordFile, TokenFile, ClientCertificate, ClientCertificateKey,
        };
        OfWorkloads = workloads
            .SelectMany(static workload => workload.Options)
            .Distinct()
            .ToDictionary(static option => option, Create);
        foreach (Option<string> option in OfWorkloads.Values)
        {
            Root.Options.Add(option);
        }

        Root.Options.OfType<VersionOption>().Single().Action = new VersionLine();
        Root.Options.OfType<HelpOption>().Single().Description = "Show this help and exit";
    }

    /// <summary>The workloads that can be asked for.</summary>
    public IReadOnlyList<Workload> Workloads { get; }

    public RootCommand Root { get; }

    public Option<string> Source { get; } = new("--connection-source", "-c")
    {
        Description =
            "Comma-separated endpoints; 'embedded' or 'embedded:N' starts a 1- or N-node cluster "
                + "inside of this process instead",
        HelpName = "endpoints|embedded:N",
        Required = true,
    };

    public Option<string> Workload { get; }

    public Option<string> Duration { get; } = Create(
        "--duration", "seconds", "30", "Measured seconds, warmup not counted");

    public Option<string> Warmup { get; } = Create(
        "--warmup", "seconds", "5", "Seconds of load whose samples are discarded");

    public Option<string> Concurrency { get; } = Create(
        "--concurrency", "n", "64", "Workers of a closed loop or consumers of an open loop");

    public Option<string> Rate { get; } = Create(
        "--rate", "n", "0", "Target requests per second: 0 is an unbounded closed loop, above 0 an open loop");

    public Option<string> KeySpace { get; } = Create("--key-space", "n", "10000", "Distinct keys bench:{n}");

    public Option<string> Buckets { get; } = Create(
        "--buckets",
        "n",
        "0",
        "Spread the keys over this many buckets, as bench:{n mod buckets}/{n}; 0: each in its own, as bench:{n}");

    public Option<string> ValueSize { get; } = Create("--value-size", "bytes", "128", "Payload of a write");

    public Option<string> ReadPct { get; } = Create(
        "--read-pct", "percent", "50", "Share of reads in the workload mixed");

    public Option<string> Durability { get; } =
        Create(
            "--durability", "level", BenchOptions.Persistent, "Durability of keys and values: persistent or ephemeral");

    public Option<string> Script { get; } = CreateOptional(
        "--script",
        "file",
        "Script that the workload script runs with the parameters @key, @value and @n, for redis in Lua with KEYS[1], "
            + "ARGV[1] and ARGV[2] [default: a get and a set of @key]");

    public Option<string> Timeout { get; } = Create("--timeout", "seconds", "10", "Timeout of one request");

    public Option<string> Format { get; } = Create("--format", "name", "console", "console, json or csv");

    public Option<string> Output { get; } = CreateOptional(
        "--output", "file", "File for the JSON or CSV report [default: standard output]");

    public Option<bool> Insecure { get; } = new("--insecure")
    {
        Description =
            "Skip the validation of TLS certificates; implied when all endpoints are localhost, 127.0.0.1 or ::1",
    };

    public Option<string> Seed { get; } = Create(
        "--seed",
        "n",
        "0",
        "Non-zero makes key order, payload and read/write choice repeatable; 0 takes one from the clock");

    public Option<string> Target { get; } = Create(
        "--target", "name", "kahuna", "kahuna, etcd (v3 gRPC) or redis (RESP2)");

    public Option<string> Connections { get; } = Create(
        "--connections", "n", "0", "Connections that the workers share; 0 takes what measured best for the target");

    public Option<string> HistogramLog { get; } = CreateOptional(
        "--hlog", "file", "File for the latencies as a histogram log (HdrHistogram, V2 encoding)");

    public Option<string> SeedKeys { get; }

    public Option<string> MaxErrors { get; } =
        CreateOptional(
            "--max-errors",
            "n",
            "Errors, timeouts and backlog of the measurement above which the exit code is 4 [default: any number, as "
                + "long as one request is answered]");

    public Option<string> ConnectTimeout { get; } = Create(
        "--connect-timeout", "seconds", "10", "Time to reach the system under load; embedded nodes have five minutes");

    public Option<string> User { get; } = CreateOptional(
        "--user", "name", "User of the cluster; needs --password-file");

    public Option<string> PasswordFile { get; } = CreateOptional(
        "--password-file", "file", "File whose only line is the password of --user");

    public Option<string> TokenFile { get; } = CreateOptional(
        "--token-file", "file", "File whose only line is a token of the cluster or of an issuer that it trusts");

    public Option<string> ClientCertificate { get; } = CreateOptional(
        "--client-certificate",
        "file",
        "Client certificate in PEM, with its key or with --client-certificate-key; or PFX");

    public Option<string> ClientCertificateKey { get; } = CreateOptional(
        "--client-certificate-key", "file", "Key of --client-certificate in PEM");

    public Option<bool> Verify { get; }

    /// <summary>The options that single workloads have.</summary>
    public IReadOnlyDictionary<WorkloadOption, Option<string>> OfWorkloads { get; }

    private static string SeedKeysText(IReadOnlyList<Workload> workloads)
    {
        string all = NameList.And(workloads.Where(static workload => workload.KeyUse == KeyUse.Read));
        string none = NameList.And(workloads.Where(static workload => workload.KeyUse == KeyUse.Written));
        return "Keys that are written before the load, from bench:0 on "
            + $"[default: for {all} all, but at most {BenchOptions.DefaultSeedKeysMax}; for {none} none]";
    }

    private static string VerifyText(IReadOnlyList<Workload> workloads)
    {
        Workload[] verified = [.. workloads.Where(static workload => workload.Promise is not null)];
        string promises = string.Join("; ", verified.Select(static workload => workload.Promise));
        return $"Check every answer of the workloads {NameList.And(verified)}: {promises}. A violation exits with 3";
    }

    private static Option<string> Create(WorkloadOption option)
    {
        string defaultValue = option.Default.ToString(CultureInfo.InvariantCulture);
        return Create(option.Name, option.ValueName, defaultValue, option.Description);
    }

    private static Option<string> Create(string name, string valueName, string defaultValue, string description) =>
        new(name)
        {
            Description = description,
            HelpName = valueName,
            DefaultValueFactory = _ => defaultValue,
        };

    private static Option<string> CreateOptional(string name, string valueName, string description) => new(name)
    {
        Description = description,
        HelpName = valueName,
    };

    /// <summary>Prints the version of this tool rather than that of the process it runs in.</summary>
    private sealed class VersionLine : SynchronousCommandLineAction
    {
        public override int Invoke(ParseResult parseResult)
        {
            parseResult.InvocationConfiguration.Output.WriteLine(ToolVersion.Text);
            return 0;
        }
    }
}
