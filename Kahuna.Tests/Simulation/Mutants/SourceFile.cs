using Microsoft.CodeAnalysis.CSharp;
using Microsoft.CodeAnalysis.CSharp.Syntax;

namespace Kahuna.Tests.Simulation.Mutants;

/// <summary>
/// A file of the shipped source, tokenized and parsed on demand. Owned by its <see cref="MutantSource"/>; one thread.
/// </summary>
/// <param name="path">Relative to the root of the source, with '/' between.</param>
internal sealed class SourceFile(string path, string text)
{
    private readonly Lazy<SourceToken[]> _tokens = new(() => SourceToken.Of(text));
    private readonly Lazy<CompilationUnitSyntax> _syntax = new(
        () => SyntaxFactory.ParseCompilationUnit(text, options: SourceToken.Options));

    public string Path => path;

    public string Text => text;

    public ReadOnlySpan<SourceToken> Tokens => _tokens.Value;

    public CompilationUnitSyntax Syntax => _syntax.Value;

    /// <summary>The line of a position, from 1 on.</summary>
    public int LineOf(int position) => text.AsSpan(0, position).Count('\n') + 1;
}
