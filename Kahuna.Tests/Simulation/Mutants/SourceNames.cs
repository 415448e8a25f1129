using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CSharp.Syntax;

namespace Kahuna.Tests.Simulation.Mutants;

/// <summary>The names under which planted bugs address declarations. Stateless; any thread.</summary>
internal static class SourceNames
{
    /// <summary>Namespace, outer types and the type itself.</summary>
    public static string[] OfType(BaseTypeDeclarationSyntax type) =>
    [
        .. type.AncestorsAndSelf().Reverse().SelectMany(static node => node switch
        {
            BaseNamespaceDeclarationSyntax space => space.Name.ToString().Split('.'),
            BaseTypeDeclarationSyntax outer => [outer.Identifier.Text],
            _ => Array.Empty<string>(),
        }),
    ];

    /// <summary>The members of a type, each under its name. A constructor has the name of its type.</summary>
    public static IEnumerable<(string Name, MemberDeclarationSyntax Member)> MembersOf(
        BaseTypeDeclarationSyntax type) =>
        type switch
        {
            EnumDeclarationSyntax list =>
                list.Members.Select(static member => (member.Identifier.Text, (MemberDeclarationSyntax)member)),
            TypeDeclarationSyntax other =>
                other.Members.SelectMany(static member => OfMember(member).Select(name => (name, member))),
            _ => [],
        };

    /// <summary>The types of the parameters, as they are written; null for a member that cannot have any.</summary>
    public static string? ParametersOf(MemberDeclarationSyntax member) => member switch
    {
        BaseMethodDeclarationSyntax method =>
            string.Join(", ", method.ParameterList.Parameters.Select(static parameter => parameter.Type)),
        IndexerDeclarationSyntax indexer =>
            string.Join(", ", indexer.ParameterList.Parameters.Select(static parameter => parameter.Type)),
        _ => null,
    };

    private static IEnumerable<string> OfMember(MemberDeclarationSyntax member) => member switch
    {
        MethodDeclarationSyntax method => [method.Identifier.Text],
        ConstructorDeclarationSyntax constructor => [constructor.Identifier.Text],
        PropertyDeclarationSyntax property => [property.Identifier.Text],
        EventDeclarationSyntax named => [named.Identifier.Text],
        BaseFieldDeclarationSyntax field =>
            field.Declaration.Variables.Select(static variable => variable.Identifier.Text),
        IndexerDeclarationSyntax => ["this"],
        OperatorDeclarationSyntax operation => ["operator " + operation.OperatorToken.Text],
        ConversionOperatorDeclarationSyntax conversion => ["operator " + conversion.Type],
        _ => [],
    };
}
