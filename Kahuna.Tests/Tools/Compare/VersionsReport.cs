using System.Globalization;
using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools.Compare;

/// <summary>
/// This version divided by an earlier one, round by round, with the floors of scripts/compare.sh --against. Immutable.
/// </summary>
internal sealed record VersionsReport(
    Machine Machine, string Against, IReadOnlyList<VersionRow> Points, IReadOnlyList<VersionFloor> Floors)
{
    /// <summary>Latencies may be as much worse as rates may be lower.</summary>
    private static readonly (string Workload, int Workers, string Field, Limit Limit)[] s_floors =
    [
        ("set", 64, "rps", Limit.AtLeast(0.97)),
        ("set", 256, "rps", Limit.AtLeast(0.97)),
        ("get", 64, "rps", Limit.AtLeast(0.97)),
        ("get", 256, "rps", Limit.AtLeast(0.97)),
        ("mixed", 64, "rps", Limit.AtLeast(0.97)),
        ("set", 1, "p50Ms", Limit.AtMost(1 / 0.97)),
        ("set", 1, "p99Ms", Limit.AtMost(1 / 0.97)),
        ("get", 1, "p50Ms", Limit.AtMost(1 / 0.97)),
        ("get", 1, "p99Ms", Limit.AtMost(1 / 0.97)),
        ("unary", 64, "rps", Limit.AtLeast(0.9)),
        ("node", 0, "readyMs", Limit.AtMost(1.05)),
        ("node", 0, "memoryKb", Limit.AtMost(1.05)),
    ];

    public static VersionsReport Of(Machine machine, string against, VersionPoints points)
    {
        VersionRow[] rows =
        [
            .. from key in points.Fields
               let before = points.Values("before", key.Workload, key.Workers, key.Field)
               let now = points.Values("now", key.Workload, key.Workers, key.Field)
               select new VersionRow(
                   key.Workload, key.Workers, key.Field, before.Median(), now.Median(),
                   Statistics.MedianRatio(now, before) ?? double.NaN),
        ];
        VersionFloor[] floors =
        [
            .. from floor in s_floors
               from row in rows
               where (row.Workload, row.Workers, row.Field) == (floor.Workload, floor.Workers, floor.Field)
               select new VersionFloor(
                   row.Workload, row.Workers, row.Field, row.Before, row.Now, row.Ratio, floor.Limit.Direction,
                   floor.Limit.Value, floor.Limit.IsReached(row.Ratio)),
        ];
        return new(machine, against, rows, floors);
    }

    public void Print(TextWriter output, int rounds, int seconds, int warmup)
    {
        output.WriteLine(Machine);
        output.WriteLine(
            $"this version divided by {Against}: medians of {rounds} rounds, {seconds} s each after {warmup} s");
        output.WriteLine($"\n{"workload",-9} {"workers",7}  {"field",-9} {"before",12} {"now",12} {"ratio",7}");
        foreach (VersionRow row in Points)
        {
            string point = $"{row.Workload,-9} {(row.Workers == 0 ? "" : $"{row.Workers}"),7}  {row.Field,-9}";
            output.Line($"{point} {row.Before,12:N3} {row.Now,12:N3} {row.Ratio,7:F2}");
        }

        output.WriteLine("\nfloors");
        foreach (VersionFloor floor in Floors)
        {
            string workers = floor.Workers == 0 ? "" : $" at {floor.Workers}";
            string factor = floor.Factor.ToString("F2", CultureInfo.InvariantCulture);
            string what = $"{floor.Field} of {floor.Workload}{workers}, {floor.Direction} {factor}";
            output.Line($"  {what,-40} {floor.Ratio,7:F2}  {(floor.Ok ? "ok" : "below")}");
        }
    }
}

/// <summary>The medians of one field, and the median of its rounds' ratios.</summary>
internal sealed record VersionRow(string Workload, int Workers, string Field, double Before, double Now, double Ratio);

/// <summary>Whether a field reached its floor.</summary>
internal sealed record VersionFloor(
    string Workload, int Workers, string Field, double Before, double Now, double Ratio,
    string Direction, double Factor, bool Ok);
