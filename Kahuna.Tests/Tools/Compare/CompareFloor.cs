using System.Text.Json.Serialization;
using Kahuna.Tests.Tools.Load;
using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools.Compare;

/// <summary>Whether Kahuna reached a floor of scripts/compare.sh. Immutable.</summary>
internal sealed record CompareFloor(
    string Workload, int Workers, string Peer, string Field, string Direction, double Factor, double Ratio, bool Ok)
{
    /// <summary>What Kahuna must reach against a peer on the same machine in the same run.</summary>
    private static readonly (string Workload, int Workers, string Peer, string Field, Limit Limit)[] s_peers =
    [
        ("set", 64, "etcd", "rps", Limit.AtLeast(14)),
        ("set", 256, "etcd", "rps", Limit.AtLeast(18)),
        ("get", 64, "etcd", "rps", Limit.AtLeast(20)),
        ("get", 256, "etcd", "rps", Limit.AtLeast(28)),
        ("set", 256, "redis", "rps", Limit.AtLeast(2)),
        ("set", 64, "etcd", "p99Ms", Limit.AtMost(1)),
        ("set", 1, "etcd", "p50Ms", Limit.AtMost(0.35)),
        ("transaction", 64, "etcd", "rps", Limit.AtLeast(10)),
        ("script", 64, "redis", "rps", Limit.AtLeast(2)),
    ];

    /// <summary>Points of ours and what they are compared with (nothing: requests per second).</summary>
    private static readonly (PointKey Point, PointKey? Base, string Field, Limit Limit)[] s_own =
    [
        (new("set", 64, "kahuna_ephemeral"), new("set", 64, "kahuna"), "rps", Limit.AtLeast(1.2)),
        (new("set", 256, "kahuna_ephemeral"), new("set", 256, "kahuna"), "rps", Limit.AtLeast(1)),
        (new("sequence", 64, "kahuna"), new("set", 64, "kahuna"), "rps", Limit.AtLeast(0.5)),
        (new("lock", 64, "kahuna"), new("set", 64, "kahuna"), "rps", Limit.AtLeast(0.5)),
        (new("lock", 256, "kahuna"), new("set", 256, "kahuna"), "rps", Limit.AtLeast(0.5)),
        (new("lock", 64, "kahuna_ephemeral"), new("set", 64, "kahuna_ephemeral"), "rps", Limit.AtLeast(0.35)),
        (new("lock", 256, "kahuna_ephemeral"), new("set", 256, "kahuna_ephemeral"), "rps", Limit.AtLeast(0.35)),
        (new("batch", 64, "kahuna"), new("set", 64, "kahuna"), "rps", Limit.AtLeast(2)),
        (new("transaction", 64, "kahuna"), new("set", 64, "kahuna"), "rps", Limit.AtLeast(0.25)),
        (new(PointKey.OfTwoPartitions, 64, "kahuna_split"), new("set", 64, "kahuna_split"), "rps",
            Limit.AtLeast(0.08)),
        (new("interactive", 64, "kahuna"), new("set", 64, "kahuna"), "rps", Limit.AtLeast(0.1)),
        (new("script", 64, "kahuna"), new("set", 64, "kahuna"), "rps", Limit.AtLeast(0.4)),
        (new(PointKey.Watch, 64, "kahuna"), new(PointKey.PacedSet, 64, "kahuna"), "p50Ms", Limit.AtMost(2)),
        (new(PointKey.Watched, 64, "kahuna"), new(PointKey.Unwatched, 64, "kahuna"), "rps", Limit.AtLeast(0.9)),
        (new("handover", 1000, "kahuna"), new("set", 1, "kahuna"), "p50Ms", Limit.AtMost(2)),
        (new("mixed", 64, "kahuna_standalone"), null, "rps", Limit.AtLeast(248_010)),
    ];

    /// <summary>Whose point it is, where both are ours.</summary>
    [JsonIgnore(Condition = JsonIgnoreCondition.WhenWritingNull)]
    public string? System { get; init; }

    public static IEnumerable<CompareFloor> Check(IReadOnlyList<CompareRatio> ratios, ComparedPoints points)
    {
        foreach ((string workload, int workers, string peer, string field, Limit limit) in s_peers)
        {
            CompareRatio? row =
                ratios.FirstOrDefault(row => (row.Workload, row.Workers, row.Peer) == (workload, workers, peer));
            if (row?.Of(field) is { } ratio)
            {
                yield return new(
                    workload, workers, peer, field, limit.Direction, limit.Value, ratio, limit.IsReached(ratio));
            }
        }

        foreach ((PointKey key, PointKey? divisor, string field, Limit limit) in s_own)
        {
            double[] values = [.. points.GetValueOrDefault(key, []).Select(row => ValueOf(row, field))];
            IEnumerable<double> divisors = divisor is { } other
                ? points.GetValueOrDefault(other, []).Select(row => ValueOf(row, field))
                : values.Select(static _ => 1.0);
            if (Statistics.MedianRatio(values, divisors) is { } ratio)
            {
                string peer = divisor is { } named ? $"{named.Workload} of {named.System} at {named.Workers}" : "req/s";
                bool ok = limit.IsReached(ratio);
                yield return new(key.Workload, key.Workers, peer, field, limit.Direction, limit.Value, ratio, ok)
                {
                    System = key.System,
                };
            }
        }
    }

    private static double ValueOf(LoadRow row, string field) => field == "rps" ? row.Rps : row.P50Ms;
}
