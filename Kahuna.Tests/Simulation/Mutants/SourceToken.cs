using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CSharp;

namespace Kahuna.Tests.Simulation.Mutants;

/// <summary>
/// A token of C# source text and its place there. A string literal is one token. Immutable, any thread.
/// </summary>
internal readonly record struct SourceToken(string Text, int Start, int End)
{
    /// <summary>The language version of the repository, or a later one.</summary>
    public static CSharpParseOptions Options { get; } = new(LanguageVersion.Latest, DocumentationMode.None);

    /// <summary>The tokens of a text or a piece of one; white space and comments are none.</summary>
    public static SourceToken[] Of(string text) =>
    [
        .. SyntaxFactory.ParseTokens(text, options: Options)
            .Where(static token => !token.IsKind(SyntaxKind.EndOfFileToken))
            .Select(static token => new SourceToken(token.Text, token.SpanStart, token.Span.End)),
    ];
}
