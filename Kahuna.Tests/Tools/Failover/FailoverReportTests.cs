using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools.Failover;

/// <summary>The table of scripts/failover.sh.</summary>
public sealed class FailoverReportTests
{
    [Fact]
    public void The_median_and_the_worst_call_have_floors()
    {
        FailoverReport report = new(
            "persistent", new Dictionary<string,
            List<double>>
            { ["kill"] = [900, 2500, 1500], ["pause"] = [1501], ["peers"] = [800, 900, 2501] }, 0);
        StringWriter output = new();
        report.Print(output);
        Assert.Equal(
            """
            | the leader, persistent | rounds | median | worst | floors |
            |---|---|---|---|---|
            | kill -9 | 3 | 1.50 s | 2.50 s | ok |
            | SIGSTOP | 1 | 1.50 s | 1.50 s | BELOW |
            | cut off from the other nodes only | 3 | 0.90 s | 2.50 s | BELOW |

            """,
            output.ToString());
        Assert.Contains("\"longestMs\"", ReportFile.Text(report), StringComparison.Ordinal);
    }
}
