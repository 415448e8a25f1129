using System.Text.RegularExpressions;
using Kahuna.Server.Hosting;
using Kahuna.Tests.Client;
using Kahuna.Tests.Tidy;

namespace Kahuna.Tests.Hosting.Measurements;

/// <summary>docs/metrics.md lists what a cluster really serves: no metric more, none less.</summary>
public sealed partial class MetricsDocumentTests
{
    /// <summary>What the runtime shows only when it has happened.</summary>
    private static readonly string[] s_mayBeAbsent = ["dotnet_exceptions_total"];

    [Fact]
    public async Task The_page_lists_every_metric_with_its_type_and_labels()
    {
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(3).WaitAsync(Wait.Longest);
        await using MeasuredActivity activity = await MeasuredActivity.BeginAsync(cluster);
        MetricsText[] pages = await Task.WhenAll(cluster.Nodes.Select(MetricsPageTests.ReadAsync));
        Dictionary<string, (string Type, HashSet<string> Labels)> served = [];
        foreach ((string name, MetricsText.Family family) in pages.SelectMany(static page => page.Families))
        {
            served.TryAdd(name, (family.Type, []));
            served[name].Labels.UnionWith(family.Labels);
        }

        Dictionary<string, (string Type, string[] Labels)> documented = Documented();
        List<string> wrong =
        [
            .. served.Keys.Except(documented.Keys).Select(static name => $"{name} is not in docs/metrics.md"),
            .. documented.Keys.Except(served.Keys).Except(s_mayBeAbsent)
                .Select(static name => $"{name} of docs/metrics.md is not served"),
        ];
        foreach (string name in served.Keys.Intersect(documented.Keys))
        {
            (string type, HashSet<string> labels) = served[name];
            if (type != documented[name].Type)
            {
                wrong.Add($"{name} is a {type}");
            }

            if (name != "target_info" && !labels.SetEquals(documented[name].Labels))
            {
                wrong.Add($"{name} has the labels {string.Join(", ", labels)}");
            }
        }

        Findings.AssertNone(wrong);
    }

    private static Dictionary<string, (string Type, string[] Labels)> Documented() =>
        Repository.Lines("docs/metrics.md").Select(static line => Row().Match(line)).Where(static row => row.Success)
            .ToDictionary(
                static row => row.Groups[1].Value,
                static row => (
                    row.Groups[2].Value,
                    Label().Matches(row.Groups[3].Value).Select(static label => label.Groups[1].Value).ToArray()));

    [GeneratedRegex(@"^\| `([a-z_0-9]+)` \| (gauge|counter|histogram) \|([^|]*)\|")]
    private static partial Regex Row();

    [GeneratedRegex("`([a-z_]+)`")]
    private static partial Regex Label();
}
