using System.Text.Json;
using Kahuna.Cli.Diagnosis;

namespace Kahuna.Tests.Cli;

/// <summary>What the doctor makes of the state of nodes.</summary>
public sealed class CheckTests
{
    private const string Healthy = """
        {"nodeId":1,"clusterId":"c","version":"1.0","featureLevel":2,"ready":true,"reason":"ready",
         "partitions":[{"partition":0,"role":"leader","term":3,"leader":1,"commitIndex":9,"appliedIndex":9,
                        "digest":"aa","logStalled":false,"stopped":null,"mayVote":true}],
         "ephemeralPartitions":[],"persistentBytes":10,"ephemeralBytes":10,"storage":{"logBytes":10},
         "limits":{"persistentBytes":100,"ephemeralBytes":100,"logBytes":100},"certificate":{"secondsLeft":9000000}}
        """;

    [Fact]
    public void A_healthy_cluster_has_no_findings() =>
        Assert.All(Checks.All(Of(Healthy, Healthy)), static finding => Assert.Equal(Severity.Ok, finding.Severity));

    [Theory]
    [InlineData("\"clusterId\":\"c\"", "\"clusterId\":\"d\"", "identity", 2)]
    [InlineData("\"version\":\"1.0\"", "\"version\":\"1.1\"", "version", 1)]
    [InlineData("\"featureLevel\":2", "\"featureLevel\":1", "feature level", 1)]
    [InlineData("\"ready\":true", "\"ready\":false", "ready", 2)]
    [InlineData("\"stopped\":null", "\"stopped\":\"a reason\"", "stopped", 2)]
    [InlineData("\"logStalled\":false", "\"logStalled\":true", "disk", 2)]
    [InlineData("\"digest\":\"aa\"", "\"digest\":\"bb\"", "replicas", 2)]
    [InlineData("\"persistentBytes\":10,", "\"persistentBytes\":85,", "limits", 1)]
    [InlineData("\"ephemeralBytes\":10,", "\"ephemeralBytes\":99,", "limits", 2)]
    [InlineData("\"logBytes\":10}", "\"logBytes\":100}", "limits", 2)]
    [InlineData("\"secondsLeft\":9000000", "\"secondsLeft\":90000", "certificate", 1)]
    [InlineData("\"secondsLeft\":9000000", "\"secondsLeft\":-5", "certificate", 2)]
    public void What_is_wrong_with_one_node_is_found(string healthy, string sick, string check, int severity)
    {
        string other = Healthy.Replace(healthy, sick, StringComparison.Ordinal);
        Finding[] found = [.. Checks.All(Of(Healthy, other)).Where(static finding => finding.Severity != Severity.Ok)];
        Finding finding = Assert.Single(found);
        Assert.Equal((check, (Severity)severity), (finding.Check, finding.Severity));
        Assert.False(string.IsNullOrEmpty(finding.Advice));
    }

    [Fact]
    public void A_partition_without_leader_is_found_when_no_node_knows_one()
    {
        string without = Healthy.Replace("\"leader\":1", "\"leader\":0", StringComparison.Ordinal);
        Assert.DoesNotContain(Checks.Leaders(Of(Healthy, without)), IsProblem);
        Assert.Contains(Checks.Leaders(Of(without, without)), IsProblem);
    }

    [Theory]
    [InlineData(0.5, 0)]
    [InlineData(-5, 1)]
    [InlineData(5, 1)]
    [InlineData(60, 2)]
    public void Clocks_that_differ_are_found(double seconds, int severity)
    {
        NodeReport report = new(new Uri("https://127.0.0.1:1")) { ClockAhead = TimeSpan.FromSeconds(seconds) };
        Assert.Equal((Severity)severity, Assert.Single(Checks.Clocks(new Examination([report], null))).Severity);
    }

    [Theory]
    [InlineData("https://127.0.0.1:1", "none", 0)]
    [InlineData("https://10.0.0.1:1", "none", 2)]
    [InlineData("https://10.0.0.1:1", "password", 0)]
    public void A_cluster_that_lets_everybody_in_is_found(string endpoint, string signIn, int severity)
    {
        Examination known = new([new NodeReport(new Uri(endpoint))], signIn);
        Assert.Equal((Severity)severity, Assert.Single(Checks.Authentication(known)).Severity);
    }

    [Fact]
    public void A_node_of_another_version_may_tell_less()
    {
        string[] statuses = ["{}", "[]", "1", """{"partitions":1,"storage":[]}""", """{"nodeId":"x"}"""];
        foreach (string status in statuses)
        {
            Assert.NotEmpty(Checks.All(Of(status)));
        }
    }

    private static bool IsProblem(Finding finding) => finding.Severity == Severity.Problem;

    private static Examination Of(params string[] statuses) => new(
        [
            .. statuses.Select(static text => new NodeReport(new Uri("https://127.0.0.1:1"))
            {
                Status = new NodeStatus(JsonDocument.Parse(text).RootElement),
            }),
        ],
        "password");
}
