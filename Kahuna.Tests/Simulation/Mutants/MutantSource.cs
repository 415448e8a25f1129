using System.Text.RegularExpressions;
using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CSharp.Syntax;

namespace Kahuna.Tests.Simulation.Mutants;

/// <summary>
/// The shipped source, in which declarations are found by name, in whatever file. Owned by its caller; one thread.
/// </summary>
internal sealed partial class MutantSource
{
    /// <summary>The projects that planted bugs may change.</summary>
    public static readonly string[] Projects = ["Kahuna.Client", "Kahuna.Server", "Kahuna.Cli"];

    private readonly ILookup<string, SourceFile> _filesOfType;

    public MutantSource(IEnumerable<SourceFile> files)
    {
        Files = [.. files];
        _filesOfType = Files
            .SelectMany(static file =>
                TypeName().Matches(file.Text).Select(match => (Name: match.Groups[1].Value, File: file)).Distinct())
            .ToLookup(static pair => pair.Name, static pair => pair.File, StringComparer.Ordinal);
    }

    public IReadOnlyList<SourceFile> Files { get; }

    /// <summary>Reads the projects below a directory.</summary>
    public static MutantSource Load(string root) => new(
        from project in Projects
        from file in Directory.EnumerateFiles(Path.Combine(root, project), "*.cs", SearchOption.AllDirectories)
        let path = Path.GetRelativePath(root, file).Replace('\\', '/')
        where !path.Contains("/bin/", StringComparison.Ordinal) && !path.Contains("/obj/", StringComparison.Ordinal)
        orderby path
        select new SourceFile(path, File.ReadAllText(file)));

    /// <summary>
    /// The declarations with a name: <c>Type</c>, <c>Type.Member</c> or <c>Type.Member(int, string)</c>, with outer
    /// types or a part of the namespace in front where more than one type has the name. Several: parts of one type, or
    /// overloads.
    /// </summary>
    /// <param name="error">Why there are none; null when there are some.</param>
    public IReadOnlyList<SourceScope> Find(string name, out string? error)
    {
        int bracket = name.IndexOf('(', StringComparison.Ordinal);
        string? parameters = bracket > 0 ? name[(bracket + 1)..].TrimEnd(')') : null;
        string[] path = Generic().Replace(bracket > 0 ? name[..bracket] : name, "").Split('.');
        error = null;
        (string Type, SourceScope Scope)[] found = [.. Types(path)];
        (string Type, SourceScope Scope)[] types = [.. Types(path[..^1])];
        if (found.Length == 0)
        {
            found = [.. types.SelectMany(type => Members(type, path[^1], parameters))];
        }

        string[] owners = [.. found.Select(static one => one.Type).Distinct()];
        if (owners.Length > 1)
        {
            error = $"{name} is ambiguous: {string.Join(", ", owners)}; put a part of the namespace in front";
        }
        else if (found.Length == 0)
        {
            error = types.Length == 0
                ? $"there is no type {(path.Length > 1 ? string.Join('.', path[..^1]) : name)} in "
                    + $"{string.Join(" or ", Projects)}"
                : $"{types[0].Type} ({types[0].Scope.File.Path}) has no member "
                    + $"{name[name.IndexOf(path[^1], StringComparison.Ordinal)..]}; "
                    + $"it has {string.Join(", ", types.SelectMany(static type => Names(type.Scope)).Distinct())}";
        }

        return error is null ? [.. found.Select(static one => one.Scope)] : [];
    }

    /// <summary>
    /// The members that hold some tokens, as <see cref="Find"/> takes their names; one for each file.
    /// </summary>
    public IEnumerable<string> Holders(SourceToken[] tokens) => Files
        .Where(file => file.Tokens.IndexOfTokens(tokens) >= 0)
        .Select(file => NameAt(file, file.Tokens[file.Tokens.IndexOfTokens(tokens)].Start));

    private static string NameAt(SourceFile file, int position)
    {
        MemberDeclarationSyntax[] around =
            [.. file.Syntax.FindToken(position).Parent!.AncestorsAndSelf().OfType<MemberDeclarationSyntax>()];
        BaseTypeDeclarationSyntax? type = around.OfType<BaseTypeDeclarationSyntax>().FirstOrDefault();
        string? member = type is null
            ? null
            : SourceNames.MembersOf(type).FirstOrDefault(one => one.Member == around[0]).Name;
        return $"{type?.Identifier.Text}{(member is null ? "" : "." + member)} ({file.Path}:{file.LineOf(position)})";
    }

    private static IEnumerable<string> Names(SourceScope type) =>
        SourceNames.MembersOf((BaseTypeDeclarationSyntax)type.Declaration).Select(static member => member.Name);

    private static IEnumerable<(string Type, SourceScope Scope)> Members(
        (string Type, SourceScope Scope) type, string name, string? parameters) =>
        SourceNames.MembersOf((BaseTypeDeclarationSyntax)type.Scope.Declaration)
            .Where(member =>
                member.Name == name && (parameters is null || SourceNames.ParametersOf(member.Member) == parameters))
            .Select(member => (type.Type, type.Scope with { Declaration = member.Member }));

    private IEnumerable<(string Type, SourceScope Scope)> Types(string[] path) =>
        from file in path.Length == 0 ? [] : _filesOfType[path[^1]]
        from type in file.Syntax.DescendantNodes().OfType<BaseTypeDeclarationSyntax>()
        let names = SourceNames.OfType(type)
        where names.AsSpan().EndsWith(path)
        select (string.Join('.', names), new SourceScope(file, type));

    [GeneratedRegex(@"\b(?:class|struct|record|interface|enum)\s+(?!(?:class|struct)\b)(\w+)")]
    private static partial Regex TypeName();

    [GeneratedRegex(@"<[\w, ]+>")]
    private static partial Regex Generic();
}
