using System.Globalization;
using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools.Compare;

/// <summary>Medians, spread, ratios and floors of scripts/compare.sh. Immutable.</summary>
internal sealed record CompareReport(
    Machine Machine, int Seconds, int Warmup, IReadOnlyList<ComparePoint> Points, IReadOnlyList<CompareRatio> Ratios,
    IReadOnlyList<CompareFloor> Floors)
{
    public static CompareReport Of(Machine machine, int seconds, int warmup, ComparedPoints measured)
    {
        ComparePoint[] points =
        [
            .. from pair in measured
               orderby pair.Key.Order
               select ComparePoint.Of(pair.Key, pair.Value),
        ];
        CompareRatio[] ratios =
        [
            .. from point in points
               let ours = points.FirstOrDefault(
                   ours => (ours.Workload, ours.Workers, ours.System) == (point.Workload, point.Workers, "kahuna"))
               where !point.System.StartsWith("kahuna", StringComparison.Ordinal) && ours is not null && point.Rps > 0
               select CompareRatio.Of(ours, point),
        ];
        return new(machine, seconds, warmup, points, ratios, [.. CompareFloor.Check(ratios, measured)]);
    }

    public void Print(TextWriter output)
    {
        output.WriteLine(Machine);
        output.Line($"points : median of the rounds, {Seconds} s each after {Warmup} s; 128-byte values, 10,000 keys");
        string head = $"{"workload",-13} {"workers",7}  {"system",-15} {"req/s",10} {"lowest",10} {"highest",10}"
            + $" {"p50 ms",8} {"p99 ms",8}  errors";
        output.Line($"\n{head}\n{new string('-', head.Length)}");
        foreach (ComparePoint p in Points)
        {
            output.Write($"{p.Workload,-13} {p.Workers,7}  {p.System,-15} ");
            output.Line($"{p.Rps,10:N0} {p.RpsMin,10:N0} {p.RpsMax,10:N0} {p.P50Ms,8:F3} {p.P99Ms,8:F3}  {p.Faults}");
        }

        if (Ratios.Count > 0)
        {
            output.WriteLine("\nKahuna divided by its peer (req/s: more is better; latency: less is better)");
            output.WriteLine($"{"workload",-13} {"workers",7}  {"peer",-15} {"req/s",8} {"p50",8} {"p99",8}");
            foreach (CompareRatio r in Ratios)
            {
                string latencies = $"{InvariantText.Cell(r.P50Ms, 8, 2)} {InvariantText.Cell(r.P99Ms, 8, 2)}";
                output.Line($"{r.Workload,-13} {r.Workers,7}  {r.Peer,-15} {r.Rps,8:F2} {latencies}");
            }
        }

        PrintFloors(output);
    }

    private void PrintFloors(TextWriter output)
    {
        if (Floors.Count > 0)
        {
            output.WriteLine("\nfloors");
        }

        foreach (CompareFloor f in Floors)
        {
            string system = f.System is null ? "" : $" ({f.System})";
            string factor = f.Factor.ToString(f.Factor >= 1000 ? "N0" : "0.0##", CultureInfo.InvariantCulture);
            string what = $"{f.Field} of {f.Workload}{system} at {f.Workers}, {f.Direction} {factor} x {f.Peer}";
            output.Line($"  {what,-82} {f.Ratio,10:N2}  {(f.Ok ? "ok" : "below")}");
        }
    }
}
