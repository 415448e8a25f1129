using System.Reflection;
using System.Reflection.Metadata;
using System.Reflection.PortableExecutable;

namespace Kahuna.Tests.Tidy;

/// <summary>
/// The names that a using of a namespace makes known: its types, and the methods of its static types, which may be
/// extensions. Of all assemblies that the tests can load. Any thread.
/// </summary>
internal static class ImportedNames
{
    private const string Attribute = "Attribute";
    private const TypeAttributes Static = TypeAttributes.Abstract | TypeAttributes.Sealed;

    private static readonly Lazy<Dictionary<string, HashSet<string>>> s_namespaces = new(Read);

    /// <summary>Null if no type of the namespace is known.</summary>
    public static HashSet<string>? Of(string import) => s_namespaces.Value.GetValueOrDefault(import);

    private static Dictionary<string, HashSet<string>> Read()
    {
        Dictionary<string, HashSet<string>> namespaces = [];
        string assemblies = (string)AppContext.GetData("TRUSTED_PLATFORM_ASSEMBLIES")!;
        foreach (string file in assemblies.Split(Path.PathSeparator))
        {
            using PEReader image = new(File.OpenRead(file));
            if (image.HasMetadata)
            {
                Read(image.GetMetadataReader(), namespaces);
            }
        }

        return namespaces;
    }

    private static void Read(MetadataReader reader, Dictionary<string, HashSet<string>> namespaces)
    {
        foreach (TypeDefinition type in reader.TypeDefinitions.Select(reader.GetTypeDefinition))
        {
            if (type.IsNested)
            {
                continue;
            }

            string home = reader.GetString(type.Namespace);
            if (!namespaces.TryGetValue(home, out HashSet<string>? names))
            {
                namespaces.Add(home, names = []);
            }

            string name = reader.GetString(type.Name).Split('`')[0];
            names.Add(name);
            if (name.EndsWith(Attribute, StringComparison.Ordinal))
            {
                names.Add(name[..^Attribute.Length]);
            }

            if ((type.Attributes & Static) == Static)
            {
                names.UnionWith(type.GetMethods().Select(
                    method => reader.GetString(reader.GetMethodDefinition(method).Name).Replace("get_", "")));
            }
        }
    }
}
