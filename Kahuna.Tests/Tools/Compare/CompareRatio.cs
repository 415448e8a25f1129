using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools.Compare;

/// <summary>Kahuna divided by a peer at one point. Immutable.</summary>
internal sealed record CompareRatio(string Workload, int Workers, string Peer, double Rps, double? P50Ms, double? P99Ms)
{
    public static CompareRatio Of(ComparePoint ours, ComparePoint peer) => new(
        peer.Workload, peer.Workers, peer.System, ours.Rps / peer.Rps, Statistics.Ratio(ours.P50Ms, peer.P50Ms),
        Statistics.Ratio(ours.P99Ms, peer.P99Ms));

    public double? Of(string field) => field switch { "rps" => Rps, "p50Ms" => P50Ms, _ => P99Ms };
}
