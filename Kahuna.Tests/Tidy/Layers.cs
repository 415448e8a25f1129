using Mono.Cecil;

namespace Kahuna.Tests.Tidy;

/// <summary>
/// The dependency rule between the folders of one project: which folder may use which. A type's folder is the first part
/// of its namespace below one of the roots; types directly in a root belong to <paramref name="rootFolder"/>. Immutable.
/// </summary>
internal sealed class Layers(string[] roots, string rootFolder, IReadOnlyDictionary<string, string[]> allowed)
{
    /// <summary>The arrows of the server: they point down, never up or sideways. Storage and Transport see only the ports of Partitions, which <see cref="PortTypes"/> checks.</summary>
    public static Layers OfServer { get; } = new(["Kahuna.Server", "Kahuna.Tests.Tidy.Samples"], "Hosting", new Dictionary<string, string[]>
    {
        ["Hosting"] = ["Api", "Cluster", "Partitions", "Raft", "State", "Storage", "Transport", "Observability", "Primitives"],
        ["Api"] = ["Cluster", "Partitions", "State", "Observability", "Primitives"],
        ["Cluster"] = ["Partitions", "Raft", "State", "Observability", "Primitives"],
        ["Partitions"] = ["Raft", "State", "Primitives"],
        ["Storage"] = ["Partitions", "Observability", "Primitives"],
        ["Transport"] = ["Partitions", "Observability", "Primitives"],
        ["Observability"] = ["Primitives"],
        ["Raft"] = ["Primitives"],
        ["State"] = ["Primitives"],
        ["Primitives"] = [],
    });

    /// <summary>Folders of the server that may use the client library's connection code (forwarding, peer links); all others see only its wire formats.</summary>
    private static readonly string[] s_mayConnect = ["Hosting", "Api", "Cluster", "Transport"];

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

            if (reference.Outermost.Namespace.StartsWith("Kahuna.Client", StringComparison.Ordinal) && !MayUseClient(from, reference.Outermost.Namespace))
            {
                yield return $"{from} may use only Kahuna.Client.Wire: {reference}";
            }
        }
    }

    private static bool MayUseClient(string from, string used) =>
        used == "Kahuna.Client.Wire" || used.StartsWith("Kahuna.Client.Wire.", StringComparison.Ordinal) || s_mayConnect.Contains(from);
}
