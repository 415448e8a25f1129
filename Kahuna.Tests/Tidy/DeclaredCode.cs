using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CSharp;
using Microsoft.CodeAnalysis.CSharp.Syntax;
using Mono.Cecil;

namespace Kahuna.Tests.Tidy;

/// <summary>
/// Which types and members the code declares, by their names in the source: of one file by its text, of everything by
/// the compiled assemblies. Not thread-safe: the tests that use it share one collection.
/// </summary>
internal static class DeclaredCode
{
    private static readonly Dictionary<string, Dictionary<string, HashSet<string>>> s_files = [];

    /// <summary>All types of all assemblies; types of one name are taken together.</summary>
    public static Dictionary<string, HashSet<string>> Types { get; } = ReadTypes();

    /// <summary>
    /// Each pair of neighbours in a full name, such as "Targets.Etcd" and "Simulation.FailoverTests".
    /// </summary>
    public static HashSet<string> Namespaces { get; } =
    [
        .. Modules
            .SelectMany(module => module.Types)
            .Select(type => NameOf(type.FullName).Split('.'))
            .SelectMany(parts => parts.Zip(parts.Skip(1)))
            .Select(pair => $"{pair.First}.{pair.Second}"),
    ];

    private static ModuleDefinition[] Modules => [.. Product.Shipped, Product.Tests];

    /// <summary>The types that a file declares, and their members.</summary>
    public static Dictionary<string, HashSet<string>> OfFile(string file)
    {
        if (!s_files.TryGetValue(file, out Dictionary<string, HashSet<string>>? types))
        {
            types = OfText(File.ReadAllText(Repository.FullPath(file)));
            s_files.Add(file, types);
        }

        return types;
    }

    private static Dictionary<string, HashSet<string>> OfText(string text)
    {
        Dictionary<string, HashSet<string>> types = [];
        SyntaxNode root = CSharpSyntaxTree.ParseText(text).GetRoot();
        foreach (BaseTypeDeclarationSyntax type in root.DescendantNodes().OfType<BaseTypeDeclarationSyntax>())
        {
            if (!types.TryGetValue(type.Identifier.Text, out HashSet<string>? members))
            {
                types.Add(type.Identifier.Text, members = []);
            }

            members.UnionWith(type.ChildNodes().SelectMany(NamesOf));
        }

        return types;
    }

    private static IEnumerable<string> NamesOf(SyntaxNode member) => member switch
    {
        MethodDeclarationSyntax method => [method.Identifier.Text],
        PropertyDeclarationSyntax property => [property.Identifier.Text],
        EnumMemberDeclarationSyntax value => [value.Identifier.Text],
        BaseFieldDeclarationSyntax field => field.Declaration.Variables.Select(variable => variable.Identifier.Text),
        ParameterListSyntax record => record.Parameters.Select(parameter => parameter.Identifier.Text),
        BaseTypeDeclarationSyntax nested => [nested.Identifier.Text],
        _ => [],
    };

    private static Dictionary<string, HashSet<string>> ReadTypes()
    {
        Dictionary<string, HashSet<string>> types = [];
        foreach (TypeDefinition type in Modules.SelectMany(module => module.GetTypes()))
        {
            if (!types.TryGetValue(NameOf(type.Name), out HashSet<string>? members))
            {
                types.Add(NameOf(type.Name), members = []);
            }

            IEnumerable<string> names = type.Methods.Select(method => method.Name)
                .Concat(type.Properties.Select(property => property.Name))
                .Concat(type.Fields.Select(field => field.Name))
                .Concat(type.NestedTypes.Select(nested => nested.Name));
            members.UnionWith(names.Select(name => NameOf(name[(name.LastIndexOf('.') + 1)..])));
        }

        return types;
    }

    /// <summary>Without the number of type parameters.</summary>
    private static string NameOf(string name) => name.Split('`')[0];
}
