using Kahuna.Tests.Tools.Load;
using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools.Compare;

/// <summary>Medians, ratios and floors of scripts/compare.sh.</summary>
public sealed class CompareReportTests
{
    private static readonly Machine s_machine = new("a processor", 2, "6.1", "ext4", "2026-01-02T03:04:05+00:00");

    [Fact]
    public void Systems_are_compared_by_the_medians_of_their_rounds()
    {
        ComparedPoints points = [];
        Add(points, "etcd", "set", 64, (1000, 2), (900, 3), (1100, 4));
        Add(points, "kahuna", "set", 64, (6000, 1), (3000, 1), (9000, 2));
        Add(points, "kahuna_ephemeral", "set", 64, (12000, 1), (3000, 1), (9000, 1));
        CompareReport report = CompareReport.Of(s_machine, 2, 1, points);
        StringWriter output = new();
        report.Print(output);
        Assert.Equal(
            """
            machine: a processor, 2 cores, ext4, Linux 6.1
            points : median of the rounds, 2 s each after 1 s; 128-byte values, 10,000 keys

            workload      workers  system               req/s     lowest    highest   p50 ms   p99 ms  errors
            -------------------------------------------------------------------------------------------------
            set                64  kahuna               6,000      3,000      9,000    0.500    1.000  3
            set                64  kahuna_ephemeral      9,000      3,000     12,000    0.500    1.000  3
            set                64  etcd                 1,000        900      1,100    1.500    3.000  3

            Kahuna divided by its peer (req/s: more is better; latency: less is better)
            workload      workers  peer               req/s      p50      p99
            set                64  etcd                6.00     0.33     0.33

            floors
              rps of set at 64, at least 14.0 x etcd                                                   6.00  below
              p99Ms of set at 64, at most 1.0 x etcd                                                   0.33  ok
              rps of set (kahuna_ephemeral) at 64, at least 1.2 x set of kahuna at 64                  1.00  below

            """,
            output.ToString());
    }

    [Fact]
    public void What_applications_build_on_is_compared_with_sets_and_with_peers()
    {
        ComparedPoints points = [];
        Add(points, "kahuna", "set", 64, (1000, 1));
        Add(points, "kahuna", "batch", 64, (2500, 1));
        Add(points, "kahuna", "transaction", 64, (300, 1));
        Add(points, "etcd", "transaction", 64, (60, 1));
        Add(points, "kahuna_split", "set", 64, (1000, 1));
        Add(points, "kahuna_split", PointKey.OfTwoPartitions, 64, (70, 1));
        Add(points, "kahuna", "interactive", 64, (100, 1));
        Add(points, "kahuna", "script", 64, (500, 1));
        Add(points, "redis", "script", 64, (200, 1));
        CompareReport report = CompareReport.Of(s_machine, 2, 1, points);
        Assert.Equal(
            [
                ("transaction", "etcd", 10, false), ("script", "redis", 2, true),
                ("batch", "set of kahuna at 64", 2, true), ("transaction", "set of kahuna at 64", 0.25, true),
                (PointKey.OfTwoPartitions, "set of kahuna_split at 64", 0.08, false),
                ("interactive", "set of kahuna at 64", 0.1, true), ("script", "set of kahuna at 64", 0.4, true),
            ],
            report.Floors.Select(static floor => (floor.Workload, floor.Peer, floor.Factor, floor.Ok)));
        Assert.Equal(
            [
                "set", "set", "batch", "transaction", "transaction", PointKey.OfTwoPartitions, "interactive", "script",
                "script",
            ],
            report.Points.Select(static point => point.Workload));
    }

    [Fact]
    public void A_lock_that_somebody_else_has_is_no_fault()
    {
        LoadRow row = Row(1, 1);
        Assert.Equal(1, ComparePoint.FaultsOf(row, "set"));
        Assert.Equal(0, ComparePoint.FaultsOf(row, "lock"));
    }

    [Fact]
    public void A_rate_may_have_a_floor_of_its_own()
    {
        ComparedPoints points = [];
        Add(points, "kahuna_standalone", "mixed", 64, (248_010, 1));
        CompareFloor floor = Assert.Single(CompareReport.Of(s_machine, 2, 1, points).Floors);
        Assert.Equal(("req/s", 248_010, true), (floor.Peer, floor.Ratio, floor.Ok));
        Assert.DoesNotContain("\"system\": null", ReportFile.Text(floor), StringComparison.Ordinal);
    }

    [Fact]
    public void Versions_are_compared_round_by_round()
    {
        VersionPoints points = new();
        foreach ((double before, double now) in new[] { (100.0, 96.0), (1000, 980), (100, 99) })
        {
            points.Add("before", "set", 64, Row(before, 2));
            points.Add("now", "set", 64, Row(now, 2));
        }

        points.Add("before", "node", 0, "readyMs", 1000);
        points.Add("now", "node", 0, "readyMs", 1060);
        VersionsReport report = VersionsReport.Of(s_machine, "0123abc", points);
        StringWriter output = new();
        report.Print(output, 3, 2, 1);
        Assert.Equal(
            """
            machine: a processor, 2 cores, ext4, Linux 6.1
            this version divided by 0123abc: medians of 3 rounds, 2 s each after 1 s

            workload  workers  field           before          now   ratio
            node               readyMs      1,000.000    1,060.000    1.06
            set            64  rps            100.000       99.000    0.98
            set            64  p50Ms            1.000        1.000    1.00
            set            64  p99Ms            2.000        2.000    1.00

            floors
              rps of set at 64, at least 0.97             0.98  ok
              readyMs of node, at most 1.05               1.06  below

            """,
            output.ToString());
    }

    private static void Add(
        ComparedPoints points, string system, string workload, int workers, params (double Rps, double P99Ms)[] rounds)
    {
        foreach ((double rps, double p99Ms) in rounds)
        {
            points.Add(new PointKey(workload, workers, system), Row(rps, p99Ms));
        }
    }

    private static LoadRow Row(double rps, double p99Ms) => new(rps, p99Ms / 2, p99Ms, 9, 9, 9, 0, 0, 1);
}
