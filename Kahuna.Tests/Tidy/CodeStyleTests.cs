using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CSharp;
using Microsoft.CodeAnalysis.CSharp.Syntax;

namespace Kahuna.Tests.Tidy;

/// <summary>
/// The style of .editorconfig, checked on the syntax of every source file. The build's analyzers check the shipped
/// projects; for the tests they would be nearly half of the time of the build.
/// </summary>
public sealed class CodeStyleTests
{
    /// <summary>What the SDK and the project file import into each file of the tests.</summary>
    private static readonly HashSet<string> s_implicit =
    [
        "System", "System.Collections.Generic", "System.IO", "System.Linq", "System.Net.Http", "System.Threading",
        "System.Threading.Tasks", "Xunit",
    ];

    [Fact]
    public void Source_files_are_in_style() =>
        Findings.AssertNone(Repository.SourceFiles.AsParallel().AsOrdered().SelectMany(
            file => Look(File.ReadAllText(Repository.FullPath(file))).Select(finding => $"{file}{finding}")));

    [Theory]
    [InlineData("using System.Xml.Linq;\nnamespace A;\ninternal class B;", 1)]
    [InlineData("using System.Xml.Linq;\nnamespace A;\n/// <see cref=\"XElement\"/>\ninternal class B;", 0)]
    [InlineData("using Xunit;\nnamespace A;\ninternal class B { private Assert? _a; }", 1)]
    [InlineData("using Kahuna.Tests;\nnamespace Kahuna.Tests.A;\ninternal class B { private Repeats? _a; }", 1)]
    [InlineData("namespace A { internal class B; }", 1)]
    [InlineData("namespace A;\nclass B;", 1)]
    [InlineData("namespace A;\ninternal class B { int _c; }", 1)]
    [InlineData("namespace A;\ninternal interface B { int C { get; } }", 0)]
    [InlineData("namespace A;\ninternal class B { private int c; }", 1)]
    [InlineData("namespace A;\ninternal class B { private static int _c; }", 1)]
    [InlineData("namespace A;\ninternal class B { private static int s_c; private const int C = 1; }", 0)]
    [InlineData("namespace A;\ninternal class B { private const int s_c = 1; }", 1)]
    [InlineData("namespace A;\ninternal class B { private void C() { if (true) return; } }", 1)]
    [InlineData("namespace A;\ninternal class B { private void C() { foreach (int i in new int[1]) C(); } }", 1)]
    [InlineData("namespace A;\ninternal class B { private void C() { if (true) { } else if (true) { } } }", 0)]
    public void Styles_are_told_apart(string text, int findings) => Assert.Equal(findings, Look(text).Count());

    private static IEnumerable<string> Look(string text)
    {
        SyntaxNode root = CSharpSyntaxTree.ParseText(text).GetRoot();
        return Unused((CompilationUnitSyntax)root).Concat(root.DescendantNodes().SelectMany(Look));
    }

    private static IEnumerable<string> Look(SyntaxNode node)
    {
        IEnumerable<string> findings = node switch
        {
            NamespaceDeclarationSyntax => ["a namespace with braces"],
            UsingDirectiveSyntax { Parent: not CompilationUnitSyntax } => ["a using inside a namespace"],
            MemberDeclarationSyntax member => LookAtMember(member),
            StatementSyntax statement when BodyOf(statement) is { } body and not BlockSyntax => ["no braces: " + body],
            _ => [],
        };
        return findings.Select(finding => $":{node.GetLocation().GetLineSpan().StartLinePosition.Line + 1}: {finding}");
    }

    private static StatementSyntax? BodyOf(StatementSyntax statement) => statement switch
    {
        IfStatementSyntax { Else.Statement: not (null or BlockSyntax or IfStatementSyntax) } branch =>
            branch.Else.Statement,
        IfStatementSyntax branch => branch.Statement,
        ForStatementSyntax loop => loop.Statement,
        CommonForEachStatementSyntax loop => loop.Statement,
        WhileStatementSyntax loop => loop.Statement,
        DoStatementSyntax loop => loop.Statement,
        LockStatementSyntax held => held.Statement,
        UsingStatementSyntax { Statement: not UsingStatementSyntax } used => used.Statement,
        FixedStatementSyntax { Statement: not FixedStatementSyntax } pinned => pinned.Statement,
        _ => null,
    };

    private static IEnumerable<string> LookAtMember(MemberDeclarationSyntax member)
    {
        if (NeedsAccessibility(member) && !member.Modifiers.Any(IsAccessibility))
        {
            yield return "no accessibility: " + member.ToString().Split('\n')[0];
        }

        if (member is FieldDeclarationSyntax field && field.Modifiers.Any(SyntaxKind.PrivateKeyword)
            && !field.Modifiers.Any(SyntaxKind.ProtectedKeyword))
        {
            (string prefix, string kind) = field.Modifiers switch
            {
                { } modifiers when modifiers.Any(SyntaxKind.ConstKeyword) => (string.Empty, "constant"),
                { } modifiers when modifiers.Any(SyntaxKind.StaticKeyword) => ("s_", "static field"),
                _ => ("_", "field"),
            };
            foreach (string name in field.Declaration.Variables.Select(variable => variable.Identifier.Text))
            {
                if (!IsNamed(name, prefix))
                {
                    yield return $"the name of a {kind}: {name}";
                }
            }
        }
    }

    /// <summary>What follows the prefix begins with a small letter; without a prefix with a capital.</summary>
    private static bool IsNamed(string name, string prefix) =>
        name.StartsWith(prefix, StringComparison.Ordinal)
        && name.Length > prefix.Length
        && char.IsUpper(name[prefix.Length]) == (prefix.Length == 0)
        && name[prefix.Length] != '_';

    private static bool NeedsAccessibility(MemberDeclarationSyntax member) => member switch
    {
        EnumMemberDeclarationSyntax or DestructorDeclarationSyntax or BaseNamespaceDeclarationSyntax => false,
        GlobalStatementSyntax or IncompleteMemberSyntax => false,
        ConstructorDeclarationSyntax made when made.Modifiers.Any(SyntaxKind.StaticKeyword) => false,
        MethodDeclarationSyntax { ExplicitInterfaceSpecifier: not null } => false,
        BasePropertyDeclarationSyntax { ExplicitInterfaceSpecifier: not null } => false,
        BaseMethodDeclarationSyntax or BasePropertyDeclarationSyntax or BaseFieldDeclarationSyntax =>
            member.Parent is not InterfaceDeclarationSyntax,
        BaseTypeDeclarationSyntax => member.Kind() != SyntaxKind.ExtensionBlockDeclaration,
        _ => true,
    };

    private static bool IsAccessibility(SyntaxToken modifier) => modifier.Kind() is SyntaxKind.PublicKeyword
        or SyntaxKind.InternalKeyword
        or SyntaxKind.ProtectedKeyword
        or SyntaxKind.PrivateKeyword
        or SyntaxKind.FileKeyword;

    /// <summary>
    /// Imports of which the file uses no name. A name that means something else in the file hides that.
    /// </summary>
    private static IEnumerable<string> Unused(CompilationUnitSyntax file)
    {
        if (file.Usings.Count == 0)
        {
            return [];
        }

        string home = file.Members.OfType<BaseNamespaceDeclarationSyntax>().FirstOrDefault()?.Name.ToString() ?? "";
        HashSet<string> used =
        [
            .. file.DescendantTokens(static node => node is not UsingDirectiveSyntax, descendIntoTrivia: true)
                .Where(token => token.IsKind(SyntaxKind.IdentifierToken))
                .Select(token => token.ValueText),
        ];
        return file.Usings
            .Where(import => import is { Alias: null, StaticKeyword.RawKind: 0, GlobalKeyword.RawKind: 0 })
            .Select(import => import.Name!.ToString())
            .Where(import => s_implicit.Contains(import)
                || $"{home}.".StartsWith($"{import}.", StringComparison.Ordinal)
                || (ImportedNames.Of(import) is { } names && !names.Overlaps(used)))
            .Select(import => $": using {import} is not needed");
    }
}
