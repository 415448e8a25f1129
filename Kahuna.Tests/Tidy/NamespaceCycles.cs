using Mono.Cecil;

namespace Kahuna.Tests.Tidy;

/// <summary>
/// Finds the sets of namespaces of one assembly that depend on each other in a circle. Reads the compiled code: a use
/// of a constant is not seen, because the compiler copies its value. Stateless.
/// </summary>
internal static class NamespaceCycles
{
    /// <summary>The cycles of an assembly; empty when all arrows point one way.</summary>
    public static IReadOnlyList<NamespaceCycle> Of(ModuleDefinition module) =>
        Of(module.Types.Where(static type => type.Namespace.StartsWith("Kahuna", StringComparison.Ordinal)));

    /// <summary>The cycles between the namespaces of these types.</summary>
    public static IReadOnlyList<NamespaceCycle> Of(IEnumerable<TypeDefinition> types)
    {
        Dictionary<string, Dictionary<string, string>> arrows = ArrowsOf([.. types]);
        Dictionary<string, HashSet<string>> reached =
            arrows.Keys.ToDictionary(static name => name, name => ReachedFrom(name, arrows));
        List<NamespaceCycle> cycles = [];
        HashSet<string> seen = [];
        foreach (string name in arrows.Keys.Order(StringComparer.Ordinal))
        {
            if (reached[name].Contains(name) && !seen.Contains(name))
            {
                string[] members =
                    [.. reached[name].Where(other => reached[other].Contains(name)).Order(StringComparer.Ordinal)];
                seen.UnionWith(members);
                cycles.Add(new NamespaceCycle(members, [.. members.SelectMany(from => Inner(from, members, arrows))]));
            }
        }

        return cycles;
    }

    /// <summary>From namespace to namespace, with the first use that makes the arrow.</summary>
    private static Dictionary<string, Dictionary<string, string>> ArrowsOf(TypeDefinition[] types)
    {
        Dictionary<string, string> homes =
            types.ToDictionary(static type => type.FullName, static type => type.Namespace);
        Dictionary<string, Dictionary<string, string>> arrows =
            homes.Values.Distinct().ToDictionary(static name => name, static _ => new Dictionary<string, string>());
        foreach (TypeDefinition type in types)
        {
            foreach (CodeReference reference in CodeReferences.Of(type))
            {
                if (homes.TryGetValue(reference.Outermost.FullName, out string? home) && home != type.Namespace)
                {
                    arrows[type.Namespace].TryAdd(home, reference.ToString());
                }
            }
        }

        return arrows;
    }

    private static HashSet<string> ReachedFrom(string start, Dictionary<string, Dictionary<string, string>> arrows)
    {
        HashSet<string> reached = [];
        Stack<string> next = new([start]);
        while (next.TryPop(out string? name))
        {
            foreach (string target in arrows[name].Keys.Where(reached.Add))
            {
                next.Push(target);
            }
        }

        return reached;
    }

    private static IEnumerable<string> Inner(
        string from, string[] members, Dictionary<string, Dictionary<string, string>> arrows) =>
        arrows[from]
            .Where(arrow => members.Contains(arrow.Key))
            .Select(arrow => $"{from} → {arrow.Key}: {arrow.Value}");
}
