using Kahuna.Tests.Tools.Processes;
using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools.Scale;

/// <summary>Tables and floors of scripts/scale.sh.</summary>
public sealed class ScaleReportTests
{
    private readonly ScaleFigures _figures = new(
        new Machine("a processor", 2, "6.1", "ext4", "2026-01-02T03:04:05+00:00"),
        new ScaleOptions("10,20", 10, null, 1, 1));
    private readonly StringWriter _output = new();

    [Fact]
    public void Figures_of_a_point_are_medians_and_faults_add_up()
    {
        ScalePoint middle = ScalePoint.Middle(
            [Point(100, faults: 1), Point(300, faults: 2, processorUs: null), Point(900, processorUs: 8)]);
        Assert.Equal((300, 3, 6), (middle.Rps, middle.Faults, middle.ProcessorUs));
        Assert.Null(ScalePoint.Middle([Point(1, processorUs: null)]).ProcessorUs);
    }

    [Fact]
    public void The_mean_length_of_keys_counts_their_digits() =>
        Assert.Equal(((10 * 7) + (10 * 8)) / 20.0, SectionResult.KeyLength(20));

    [Fact]
    public void Sizes_are_compared_with_the_smallest()
    {
        string text =
            Add("keys", new KeysResult(2, [Size(10, 1_000_000, 600, 400), Size(2_000_000, 500_000_000, 300, 400)]));
        Assert.Contains(
            "set           256   2,000,000        350     1.00     2.00      3.00       4.00   1.50   1.00       0\n",
            text, StringComparison.Ordinal);
        Assert.Contains(
            "  time per set at 256, 2,000,000 keys / 10                           1.50  at most   1.30  BELOW\n",
            text, StringComparison.Ordinal);
        Assert.Contains(
            "  memory per key at 2,000,000 keys, bytes                          249.50  at most 335.00  ok\n",
            text, StringComparison.Ordinal);
        Assert.Contains(
            "  restart with 2,000,000 keys, s                                    12.50  at most  12.00  BELOW\n",
            text, StringComparison.Ordinal);
        Assert.Contains(
            "  digests equal at 10 keys                                            yes                   ok\n",
            text, StringComparison.Ordinal);
        Assert.DoesNotContain("restart with 10 keys", text, StringComparison.Ordinal);
    }

    [Fact]
    public void Sets_while_states_are_stored_are_compared_with_sets_without()
    {
        string text = Add("flush", new FlushResult(10, new()
        {
            ["never"] = [new(Point(1000), 0)],
            ["default"] = [new(Point(850), 2)],
            ["64 MB"] = [new(Point(600), 3), new(Point(800), 2)],
        }, true));
        Assert.Contains(
            "64 MB           700        600        800     2.00      3.00   0.70   1.00   1.00                 3 2  ",
            text, StringComparison.Ordinal);
        Assert.Equal([true, false, true, false, true], _figures.Floors.Select(static floor => floor.Ok));
    }

    [Fact]
    public void A_follower_that_is_filled_slows_sets_down()
    {
        Dictionary<string, double> seconds = new() { ["answers"] = 1, ["filled"] = 3, ["votes"] = 3.5, ["back"] = 4 };
        string text = Add(
            "snapshot",
            new SnapshotResult(
                1_000_000, 12,
                [new(2, Point(1000), Point(650), seconds, true, 5_000_000, ["Partition 1: loaded"], [])]));
        Assert.Contains(
            "    1       1.00       3.00       3.50       4.00       70.0        5.0\n",
            text, StringComparison.Ordinal);
        Assert.Contains(
            "  rate meanwhile / without                                           0.65  at least   0.70  BELOW\n",
            text, StringComparison.Ordinal);
        Assert.Contains("node 2 in the last round\n  Partition 1: loaded\n", text, StringComparison.Ordinal);
    }

    [Fact]
    public void The_last_minutes_are_compared_with_earlier_ones()
    {
        static LongMinute Minute(int i, double memory) => new(i, 1000 - (i * 10), 1, 0, i * 256_000_000L, 9, memory);
        LongMinute[] minutes = [Minute(1, 1e6), Minute(2, 2e6), Minute(3, 3e6), Minute(4, 4e6)];
        string text = Add("long", new LongResult(10_000, 512_000_000, minutes, [], false));
        Assert.Contains(
            "  most disk per node / log kept (512 MB)                             2.00  at most   3.00  ok\n",
            text, StringComparison.Ordinal);
        Assert.Contains(
            "  memory, last 2 min / second 2 min                                  1.00  at most   1.10  ok\n",
            text, StringComparison.Ordinal);
        Assert.Contains(
            "  rate, last 2 min / first 2 min                                     0.98  at least   0.90  ok\n",
            text, StringComparison.Ordinal);
        Assert.Contains(
            "  digests equal                                                        no                   BELOW\n",
            text, StringComparison.Ordinal);
    }

    private static ScalePoint Point(double rps, long faults = 0, double? processorUs = 4) =>
        new(rps, 1, 2, 3, 5, 10, faults, processorUs);

    private static SizeResult Size(int keys, long resident, params double[] rates) => new()
    {
        Keys = keys,
        KeyBytes = 7,
        FillSeconds = 1,
        Points = [new SizePoint("set", 256, keys, [.. rates.Select(static rate => Point(rate))])],
        StateStore = "rocksdb",
        Memory = [],
        MemoryHighest = new MemoryUse(resident, 1, 2, 3),
        DiskHighest = new DiskUse(1, 2),
        Restart = new RestartResult(12.5, []),
        DigestsEqual = true,
    };

    private string Add(string section, SectionResult result)
    {
        new ScaleReport(_output, _figures, "").Add(section, result);
        return _output.ToString();
    }
}
