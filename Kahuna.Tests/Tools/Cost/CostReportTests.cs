using Kahuna.Tests.Tools.Load;

namespace Kahuna.Tests.Tools.Cost;

/// <summary>Kinds of threads, and processor time per operation.</summary>
public sealed class CostReportTests
{
    [Theory]
    [InlineData("log", "log")]
    [InlineData("log-prepare", "log: preparing segments")]
    [InlineData(".NET TP Gate", "client edge and turns (pool)")]
    [InlineData("peer 3 reader", "links to peers, and turns")]
    [InlineData("client link", "links of clients, and turns")]
    [InlineData("dotnet", "rest")]
    public void The_longest_beginning_names_the_kind(string thread, string kind) =>
        Assert.Equal(kind, CostReport.KindOf(thread));

    [Fact]
    public void Ticks_become_microseconds_per_operation()
    {
        // 10,000 operations; a tick is 10 ms, and so 1 us for each of them.
        CostSample sample = new(
            10, 2000, new() { ["rest"] = new(100, 50, 10), ["log"] = new(100, 0, 0) },
            [
                new() { ["rest"] = new(0, 0, 9), ["log"] = new(300, 100, 5000, 250) },
                new() { ["log"] = new(50, 0, 0) },
                new() { ["log"] = new(150, 50, 100) },
            ]);
        StringWriter output = new();
        CostReport.Print(output, "set at 1 workers", new LoadRow(1000, 0.5, 1.25, 2, 3, 4, 0, 0, 0), sample, 2);
        Assert.Equal(
            """
            set at 1 workers: 1,000/s, p50 0.500 ms, p99 1.250 ms, 5.0 operations per log entry
              process     threads                       user us/op system us/op switches/op forced/op
              client      whole process                     200.00        50.00       0.001     0.000
              leader      log                               300.00       100.00       0.500     0.025
              a follower  log                               100.00        25.00       0.005     0.000
              all four processes: 900.00 us/op, 4500 us per log entry, 45 % of 2 processors


            """,
            output.ToString());
    }
}
