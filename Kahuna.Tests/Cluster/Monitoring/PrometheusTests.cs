using System.Globalization;
using System.Text.Json.Nodes;
using Kahuna.Client;
using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Certificates;
using Kahuna.Server.Hosting.Options;
using Kahuna.Tests.Client;
using Kahuna.Tests.Hosting;
using Kahuna.Tests.Hosting.Measurements;
using Kahuna.Tests.Tidy;

namespace Kahuna.Tests.Cluster.Monitoring;

/// <summary>
/// A real Prometheus scrapes a cluster that requires authentication, with the configuration, the alerts and the
/// dashboard that deploy/ ships.
/// </summary>
[Collection(ClusterCollection.Name)]
public sealed class PrometheusTests : IDisposable
{
    private const string Token = "0123456789abcdef0123456789abcdef";
    private const string Alerts = "deploy/prometheus/alerts.yml";

    /// <summary>Queries that return nothing while nothing fails.</summary>
    private static readonly string[] s_mayBeEmpty = ["Operations that fail"];

    private readonly TemporaryDirectory _directory = new();

    public void Dispose() => _directory.Dispose();

    [Fact]
    public async Task Configuration_alerts_and_page_are_good_to_promtool()
    {
        await PrometheusServer.CheckAsync(null, "rules", Repository.FullPath(Alerts));
        await PrometheusServer.CheckAsync(null, "config", Configuration([new Uri("https://node.example:8082")], null));
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1).WaitAsync(Wait.Longest);
        string page = await MetricsPageTests.TextAsync(cluster.Nodes[0]);

        // promtool does not like the names of the runtime's own metrics.
        string own = string.Join('\n', page.Split('\n').Where(static line =>
            !line.Contains("dotnet_", StringComparison.Ordinal)));
        await PrometheusServer.CheckAsync(own, "metrics");
    }

    [Fact]
    public void The_dashboard_is_one_for_Grafana_11()
    {
        Dashboard dashboard = new();
        Assert.True(dashboard.SchemaVersion >= 39);
        Assert.Equal(["datasource", "instance"], dashboard.Variables);
        Assert.All(dashboard.Panels, static panel =>
        {
            Assert.Equal("${datasource}", (string?)panel["datasource"]!["uid"]);
            Assert.NotEmpty(panel["targets"]!.AsArray());
        });
        Assert.Equal(
            dashboard.Panels.Count(), dashboard.Panels.Select(static panel => (int)panel["id"]!).Distinct().Count());
    }

    [Fact]
    public async Task Prometheus_evaluates_every_alert_and_every_query_of_the_dashboard()
    {
        string tokenFile = Secret("token", Token);
        string first = Secret("first", "root\nroot-password\n");
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(3, configure: options => options with
        {
            Access = new AccessOptions
            {
                Mode = AuthMode.Required,
                IsModeGiven = true,
                BootstrapFile = first,
                MetricsTokenFile = tokenFile,
            },
        }).WaitAsync(Wait.Longest);
        string root = "Basic " + Convert.ToBase64String("root:root-password"u8);
        await using MeasuredActivity activity = await MeasuredActivity.BeginAsync(
            cluster, root, KahunaCredentials.Password("root", "root-password"));
        string configuration = Configuration(
            [.. cluster.Nodes.Select(static node => node.Options.Advertise)],
            NodeCertificates.TrustedCaFile(cluster.Nodes[0].Options));
        await using PrometheusServer prometheus = await PrometheusServer.StartAsync(
            configuration, Path.Combine(_directory.Path, "data"));

        await AwaitSeriesAsync(prometheus, "count_over_time(kahuna_node_ready[5m]) >= 3", 3);
        await activity.RepeatAsync();
        await AwaitSeriesAsync(prometheus, "sum(increase(kahuna_log_batches_total[5m])) > 0", 1);
        await CheckAlertsAsync(prometheus);
        await CheckDashboardAsync(prometheus);

        // And an alert sees what it is about.
        await cluster.Nodes[2].DisposeAsync();
        await AwaitSeriesAsync(prometheus, ExpressionOf(await prometheus.RulesAsync(), "KahunaNodeDown"), 1);
        await AwaitSeriesAsync(prometheus, ExpressionOf(await prometheus.RulesAsync(), "KahunaPeerDisconnected"), 2);
    }

    private static async Task CheckAlertsAsync(PrometheusServer prometheus)
    {
        JsonObject[] rules = [];
        await Eventually.TrueAsync(LastNet.Span, "Prometheus has evaluated every alert", async () =>
        {
            rules = await prometheus.RulesAsync();
            return rules.Length > 0 && rules.All(static rule => (string?)rule["health"] != "unknown");
        });
        Assert.Equal(
            File.ReadLines(Repository.FullPath(Alerts)).Count(static line =>
                line.TrimStart().StartsWith("- alert:", StringComparison.Ordinal)),
            rules.Length);
        string[] known = [.. (await prometheus.NamesAsync())];
        List<string> wrong = [];
        foreach (JsonObject rule in rules)
        {
            string name = (string)rule["name"]!;
            string expression = (string)rule["query"]!;
            if ((string?)rule["health"] != "ok")
            {
                wrong.Add($"{name}: {rule["lastError"]}");
            }

            await prometheus.QueryAsync(expression);
            wrong.AddRange(MetricNames.In(expression).Except(known).Select(metric => $"{name}: there is no {metric}"));
            if ((string?)rule["state"] != "inactive")
            {
                wrong.Add($"{name} is {rule["state"]} in a healthy cluster: {rule["alerts"]}");
            }
        }

        Findings.AssertNone(wrong);
    }

    private static async Task CheckDashboardAsync(PrometheusServer prometheus)
    {
        string[] known = [.. (await prometheus.NamesAsync())];
        List<string> wrong = [];
        foreach ((string panel, string query) in new Dashboard().Queries)
        {
            wrong.AddRange(MetricNames.In(query).Except(known).Select(metric => $"{panel}: there is no {metric}"));
            if ((await prometheus.QueryAsync(query)).Count == 0 && !s_mayBeEmpty.Contains(panel))
            {
                wrong.Add($"{panel}: no series: {query}");
            }
        }

        Findings.AssertNone(wrong);
    }

    private static Task AwaitSeriesAsync(PrometheusServer prometheus, string query, int count) =>
        Eventually.TrueAsync(
            LastNet.Span,
            string.Create(CultureInfo.InvariantCulture, $"{query} has {count} series"),
            async () => (await prometheus.QueryAsync(query)).Count >= count);

    private static string ExpressionOf(JsonObject[] rules, string name) =>
        (string)rules.Single(rule => (string)rule["name"]! == name)["query"]!;

    /// <summary>The shipped configuration, for these nodes and with the files of the test.</summary>
    private string Configuration(IReadOnlyList<Uri> nodes, string? authority)
    {
        string token = Secret("metrics-token", Token);
        List<string> lines = [];
        bool isTarget = false;
        foreach (string line in Repository.Lines("deploy/prometheus/prometheus.yml"))
        {
            if (line.Contains(".example:8082", StringComparison.Ordinal))
            {
                if (!isTarget)
                {
                    lines.AddRange(nodes.Select(static node => $"          - {node.Authority}"));
                }

                isTarget = true;
                continue;
            }

            lines.Add(line.Replace("15s", "1s", StringComparison.Ordinal)
                .Replace("- alerts.yml", "- " + Repository.FullPath(Alerts), StringComparison.Ordinal)
                .Replace("credentials_file: metrics-token", "credentials_file: " + token, StringComparison.Ordinal)
                .Replace(
                    "ca_file: ca.pem",
                    authority is null ? "insecure_skip_verify: true" : "ca_file: " + authority,
                    StringComparison.Ordinal));
        }

        Assert.True(isTarget);
        return _directory.File("prometheus.yml", string.Join('\n', lines) + "\n");
    }

    private string Secret(string name, string content)
    {
        string file = _directory.File(name, content);
        if (!OperatingSystem.IsWindows())
        {
            File.SetUnixFileMode(file, UnixFileMode.UserRead | UnixFileMode.UserWrite);
        }

        return file;
    }
}
