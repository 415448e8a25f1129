using Kahuna.Tests.Cluster;
using Kahuna.Tests.Tools.Load;
using Kahuna.Tests.Tools.Processes;

namespace Kahuna.Tests.Tools;

/// <summary>What scripts/memory.sh prints.</summary>
public sealed class MemoryReportTests
{
    [Fact]
    public void Pauses_count_while_the_keys_were_overwritten()
    {
        CollectorRow gc = new(30_000_000, 0, 0, 12.5, [11, 2, 3], []) { Pauses = 1003 };
        string text = Print(1_000_000, gc, pausesBefore: 1001);
        Assert.Contains(
            "collector pauses                2 while overwriting, 1,003 since the start\n", text,
            StringComparison.Ordinal);
        Assert.Contains(
            "longest pause                3.00 ms while overwriting, 12.50 ms since the start\n", text,
            StringComparison.Ordinal);
        Assert.Contains("resident memory             360.0 MB", text, StringComparison.Ordinal);
        Assert.EndsWith(
            "floor: memory at most 350 MB          missed\nfloor: longest pause at most 10 ms    ok\n", text,
            StringComparison.Ordinal);
    }

    [Fact]
    public void Floors_are_for_a_million_keys_and_old_pauses_are_not_known_one_by_one()
    {
        CollectorRow gc = new(30_000_000, 0, 0, 12.5, [11, 2, 3], []) { Pauses = 9 };
        string text = Print(1000, gc, pausesBefore: 0);
        Assert.EndsWith("  (the latest 3 of them are known one by one)\n", text, StringComparison.Ordinal);
    }

    private static string Print(int keys, CollectorRow gc, int pausesBefore)
    {
        StringWriter output = new();
        MemoryReport.Print(
            output, keys, 128, new LoadRow(99, 1, 2, 3, 4, 5, 1, 1, 0), new MemoryUse(360_000_000, 1, 2, 0), gc,
            pausesBefore);
        return output.ToString();
    }
}
