using Mono.Cecil;

namespace Kahuna.Tests.Tidy;

/// <summary>
/// The ports of a folder: its interfaces and abstract classes, and what their signatures mention of the same folder.
/// An adapter may use these and nothing else of it. Stateless.
/// </summary>
internal static class PortTypes
{
    public static HashSet<string> Of(ModuleDefinition module, string portNamespace)
    {
        HashSet<string> ports = [];
        Queue<TypeDefinition> open = new(module.Types.Where(type => type.Namespace == portNamespace
            && (type.IsInterface || (type.IsAbstract && !type.IsSealed))));
        while (open.TryDequeue(out TypeDefinition? type))
        {
            if (!ports.Add(type.FullName))
            {
                continue;
            }

            foreach (CodeReference reference in CodeReferences.SignatureOf(type))
            {
                if (reference.Outermost.Namespace == portNamespace
                    && module.GetType(reference.Outermost.FullName) is { } mentioned)
                {
                    open.Enqueue(mentioned);
                }
            }
        }

        return ports;
    }

    /// <summary>The references of an adapter's type to types of the folder that are no ports.</summary>
    public static IEnumerable<string> Violations(TypeDefinition adapter, string folder, HashSet<string> ports) =>
        CodeReferences.Of(adapter)
            .Where(reference => (reference.Outermost.Namespace == folder
                || reference.Outermost.Namespace.StartsWith(folder + ".", StringComparison.Ordinal))
                && !ports.Contains(reference.Outermost.FullName))
            .Select(reference => $"an adapter may use only the ports: {reference}");
}
