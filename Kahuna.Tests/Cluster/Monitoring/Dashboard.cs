using System.Text.Json.Nodes;
using Kahuna.Tests.Tidy;

namespace Kahuna.Tests.Cluster.Monitoring;

/// <summary>The dashboard that deploy/grafana ships. Immutable.</summary>
internal sealed class Dashboard
{
    private readonly JsonObject _root = JsonNode.Parse(
        File.ReadAllText(Repository.FullPath("deploy/grafana/kahuna.json")))!.AsObject();

    public int SchemaVersion => (int)_root["schemaVersion"]!;

    /// <summary>Names of its variables.</summary>
    public IEnumerable<string> Variables =>
        _root["templating"]!["list"]!.AsArray().Select(static variable => (string)variable!["name"]!);

    /// <summary>All panels but the titles of rows.</summary>
    public IEnumerable<JsonObject> Panels =>
        _root["panels"]!.AsArray().Select(static panel => panel!.AsObject()).Where(static panel =>
            (string)panel["type"]! != "row");

    /// <summary>Every query, with values for its variables.</summary>
    public IEnumerable<(string Panel, string Query)> Queries =>
        from panel in Panels
        from target in panel["targets"]!.AsArray()
        select (
            (string)panel["title"]!,
            ((string)target!["expr"]!).Replace("$__rate_interval", "1m", StringComparison.Ordinal)
                .Replace("$instance", ".*", StringComparison.Ordinal));
}
