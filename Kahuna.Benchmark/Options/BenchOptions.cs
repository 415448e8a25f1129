using Kahuna.Benchmark.Targets;
using Kahuna.Client;

namespace Kahuna.Benchmark.Options;

/// <summary>A validated command line. Immutable.</summary>
internal sealed record BenchOptions
{
    /// <summary>
    /// Keys that are seeded without being asked for; reads of keys above are misses until a write fills them.
    /// </summary>
    public const int DefaultSeedKeysMax = 100_000;

    public const string Persistent = "persistent";
    public const string Ephemeral = "ephemeral";

    public required ConnectionSource Source { get; init; }

    /// <summary>Name of the workload.</summary>
    public string Workload { get; init; } = "mixed";

    public TimeSpan Duration { get; init; } = TimeSpan.FromSeconds(30);

    public TimeSpan Warmup { get; init; } = TimeSpan.FromSeconds(5);

    /// <summary>Workers of a closed loop, consumers of an open one.</summary>
    public int Concurrency { get; init; } = 64;

    /// <summary>Requests per second of an open loop; 0 is a closed loop.</summary>
    public long Rate { get; init; }

    public int KeySpace { get; init; } = 10_000;

    /// <summary>Buckets over which the keys are spread; 0: each in its own.</summary>
    public int Buckets { get; init; }

    /// <summary>Partitions that the workload needs; embedded nodes have at least as many.</summary>
    public int Partitions { get; init; } = 1;

    /// <summary>Keys that are written before the load.</summary>
    public int SeedKeys { get; init; }

    public int ValueSize { get; init; } = 128;

    public int ReadPct { get; init; } = 50;

    public string Durability { get; init; } = Persistent;

    /// <summary>Path of the script.</summary>
    public string? Script { get; init; }

    /// <summary>The text of <see cref="Script"/>; null without a path: the workload has one of its own.</summary>
    public string? ScriptText { get; init; }

    /// <summary>Of one request.</summary>
    public TimeSpan Timeout { get; init; } = TimeSpan.FromSeconds(10);

    /// <summary>Of reaching the target.</summary>
    public TimeSpan ConnectTimeout { get; init; } = TimeSpan.FromSeconds(10);

    /// <summary>
    /// Errors and timeouts that a good run may have; null: any number, as long as a request was answered.
    /// </summary>
    public long? MaxErrors { get; init; }

    public ReportFormat Format { get; init; } = ReportFormat.Console;

    public string? Output { get; init; }

    /// <summary>Says to the cluster who the tool is; null: nobody.</summary>
    public KahunaCredentials? Credentials { get; init; }

    /// <summary>Whether <c>--insecure</c> was given.</summary>
    public bool IsInsecureAsked { get; init; }

    /// <summary>Never 0: a seed from the clock is already drawn.</summary>
    public required long Seed { get; init; }

    public TargetKind Target { get; init; }

    /// <summary>Connections to the target; 0 leaves the choice to the target.</summary>
    public int Connections { get; init; }

    /// <summary>Everything that the workload promises is checked over all answers, and the report says so.</summary>
    public bool IsVerified { get; init; }

    /// <summary>File for the histogram log.</summary>
    public string? HistogramLog { get; init; }

    /// <summary>The values of the options that the workload has of its own.</summary>
    public IReadOnlyDictionary<WorkloadOption, int> OfWorkload { get; init; } = new Dictionary<WorkloadOption, int>();

    /// <summary>
    /// Whether certificates are not validated: asked for, or implied because all endpoints are on this machine.
    /// </summary>
    public bool IsInsecure => IsInsecureAsked || Source.IsLoopback;
}
