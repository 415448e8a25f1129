using System.Globalization;
using Kahuna.Tests.Tidy;

namespace Kahuna.Tests.Cluster.Soak;

/// <summary>
/// What a soak is asked for: the command line of <c>scripts/soak.sh</c>, and the sizes of the load. Immutable.
/// </summary>
internal sealed record SoakOptions
{
    public const string Usage =
        "usage: soak [--minutes M] [--seed N] [--history FILE]; scripts/soak.sh --help tells more";

    /// <summary>How long faults go on; starting, healing and the last checks come on top.</summary>
    public TimeSpan Duration { get; init; } = TimeSpan.FromMinutes(10);

    /// <summary>
    /// Decides about operations and faults. What the processes make of them is not in anybody's hand, so a seed does
    /// not replay a run.
    /// </summary>
    public ulong Seed { get; init; } = (ulong)Random.Shared.Next(1, 1_000_000);

    /// <summary>Clients of the SDK, each with connections and a request timeout of its own.</summary>
    public int Clients { get; init; } = 4;

    /// <summary>Concurrent callers of each client.</summary>
    public int CallersPerClient { get; init; } = 3;

    /// <summary>
    /// Callers that know one node only: a node that was stopped gets their calls when it wakes up, and one that does
    /// not lead forwards them.
    /// </summary>
    public int CallersPerNode { get; init; } = 4;

    /// <summary>
    /// Mean pause of a caller between two operations: what is left of two processors for three nodes and the checker is
    /// little.
    /// </summary>
    public double ThinkMs { get; init; } = 4;

    /// <summary>
    /// Keys that are in use at a time. The first are so busy that callers meet there, the last so quiet that they live
    /// through many faults.
    /// </summary>
    public int KeySlots { get; init; } = 100;

    /// <summary>
    /// The whole history goes there. Null: only keys with a finding are written, to <see cref="FindingsFile"/>.
    /// </summary>
    public string? HistoryFile { get; init; }

    /// <summary>Where the history is that has the findings.</summary>
    public string FindingsFile =>
        HistoryFile
            ?? Path.Combine(
                Repository.Root, ".kahuna", string.Create(CultureInfo.InvariantCulture, $"soak-{Seed}.jsonl"));

    /// <summary>Reads the arguments; null, with a sentence, when they are no use.</summary>
    public static SoakOptions? Parse(string[] arguments, out string? error)
    {
        SoakOptions options = new();
        error = null;
        for (int i = 0; i < arguments.Length && error is null; i += 2)
        {
            string? value = i + 1 < arguments.Length ? arguments[i + 1] : null;
            (options, error) = value is null
                ? (options, $"{arguments[i]} needs a value")
                : options.With(arguments[i], value);
        }

        return error is null ? options : null;
    }

    private (SoakOptions Options, string? Error) With(string name, string value)
    {
        CultureInfo culture = CultureInfo.InvariantCulture;
        switch (name)
        {
            case "--minutes":
                return double.TryParse(value, NumberStyles.AllowDecimalPoint, culture, out double minutes)
                    && minutes is > 0 and <= 100_000
                    ? (this with { Duration = TimeSpan.FromMinutes(minutes) }, null)
                    : (this, "--minutes needs a number above 0, at most 100000");
            case "--seed":
                return ulong.TryParse(value, NumberStyles.None, culture, out ulong seed)
                    ? (this with { Seed = seed }, null)
                    : (this, "--seed needs a whole number");
            case "--history":
                return value.Length > 0
                    ? (this with { HistoryFile = Path.GetFullPath(value) }, null)
                    : (this, "--history needs the name of a file");
            default:
                return (this, $"unknown option {name}");
        }
    }
}
