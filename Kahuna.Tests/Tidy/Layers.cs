using Mono.Cecil;

namespace Kahuna.Tests.Tidy;

/// <summary>
/// The dependency rule between the folders of one project: which folder may use which. A type's folder is the first
/// part of its namespace below one of the roots; types directly in a root belong to <paramref name="rootFolder"/>.
/// Immutable.
/// </summary>
internal sealed class Layers(string[] roots, string rootFolder, IReadOnlyDictionary<string, string[]> allowed)
{
    /// <summary>
    /// The arrows of the server: they point down, never up or sideways. Storage and Transport see only the ports of
    /// Partitions, which <see cref="PortTypes"/> checks.
    /// </summary>
    public static Layers OfServer { get; } = new(["Kahuna.Server", "Kahuna.Tests.Tidy.Samples"], "Hosting",
        new Dictionary<string, string[]>
        {
            ["Hosting"] =
            [
                "Api", "Access", "Cluster", "Partitions", "Raft", "State", "Storage", "Transport", "Observability",
                "Primitives",
            ],
            ["Api"] = ["Access", "Cluster", "Partitions", "State", "Observability", "Primitives"],
            ["Cluster"] = ["Access", "Partitions", "Raft", "State", "Observability", "Primitives"],
            ["Access"] = ["State", "Primitives"],
            ["Partitions"] = ["Raft", "State", "Primitives"],
            ["Storage"] = ["Partitions", "Observability", "Primitives"],
            ["Transport"] = ["Partitions", "Observability", "Primitives"],
            ["Observability"] = ["Primitives"],
            ["Raft"] = ["Primitives"],
            ["State"] = ["Primitives"],
            ["Primitives"] = [],
        });

    /// <summary>
    /// The arrows inside State: the state machine on top, its tables beside each other, the rows below.
    /// </summary>
    public static Layers OfState { get; } =
        new(["Kahuna.Server.State", "Kahuna.Tests.Tidy.Samples.State"], "StateMachine", new Dictionary<string, string[]>
        {
            ["StateMachine"] = ["KeyValues", "Locks", "Sequences", "Sessions", "Meta", "Slots", "Dispatch", "Rows"],
            ["KeyValues"] = ["Dispatch", "Rows"],
            ["Locks"] = ["Dispatch", "Rows"],
            ["Sequences"] = ["Dispatch", "Rows"],
            ["Sessions"] = ["Dispatch", "Rows"],
            ["Meta"] = ["Dispatch", "Rows"],
            ["Slots"] = ["Dispatch", "Rows"],
            ["Dispatch"] = ["Rows"],
            ["Rows"] = [],
        });

    /// <summary>
    /// The arrows between the houses of Partitions. Requests and Snapshots do not know each other, and nobody below the
    /// loops knows a loop but by a port.
    /// </summary>
    public static Layers OfPartitions { get; } = new(["Kahuna.Server.Partitions",
        "Kahuna.Tests.Tidy.Samples.Partitions"], "Partitions", new Dictionary<string, string[]>
        {
            ["Loops"] = ["Groups", "Requests", "Snapshots", "Ports"],
            ["Groups"] = ["Requests", "Snapshots", "Ports"],
            ["Requests"] = ["Ports"],
            ["Snapshots"] = ["Ports"],
            ["Ports"] = ["Changes"],
            ["Changes"] = [],
        });

    /// <summary>
    /// Folders of the server that may use the client library: forwarding and the development certificates. All others
    /// know only the wire.
    /// </summary>
    private static readonly string[] s_mayUseClient = ["Hosting", "Cluster"];

    public string? FolderOf(TypeReference type)
    {
        while (type.DeclaringType is not null)
        {
            type = type.DeclaringType;
        }

        foreach (string root in roots)
        {
            if (type.Namespace == root)
            {
                return rootFolder;
            }

            if (type.Namespace.StartsWith(root + ".", StringComparison.Ordinal))
            {
                return type.Namespace[(root.Length + 1)..].Split('.')[0];
            }
        }

        return null;
    }

    /// <summary>What is wrong with the references of one type; empty when all point where they may.</summary>
    public IEnumerable<string> Violations(TypeDefinition type)
    {
        if (FolderOf(type) is not { } from)
        {
            yield break;
        }

        if (!allowed.TryGetValue(from, out string[]? targets))
        {
            yield return $"{type.FullName}: the folder {from} is not in the dependency rule.";
            yield break;
        }

        foreach (CodeReference reference in CodeReferences.Of(type))
        {
            string? to = FolderOf(reference.Type);
            if (to is not null && to != from && !targets.Contains(to))
            {
                yield return $"{from} must not use {to}: {reference}";
            }

            if (reference.Outermost.Namespace.StartsWith("Kahuna.Client", StringComparison.Ordinal)
                && !s_mayUseClient.Contains(from))
            {
                yield return $"{from} must not use the client: {reference}";
            }
        }
    }
}
