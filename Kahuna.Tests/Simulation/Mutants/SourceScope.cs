using Microsoft.CodeAnalysis.CSharp.Syntax;

namespace Kahuna.Tests.Simulation.Mutants;

/// <summary>
/// A declaration in a source file: a member with its body, or a type. Owned by its caller; one thread.
/// </summary>
internal readonly record struct SourceScope(SourceFile File, MemberDeclarationSyntax Declaration)
{
    /// <summary>The tokens of the declaration.</summary>
    public ReadOnlySpan<SourceToken> Tokens
    {
        get
        {
            int first = IndexFrom(Declaration.SpanStart);
            return File.Tokens[first..IndexFrom(Declaration.Span.End)];
        }
    }

    /// <summary>The first token that begins at a position or behind it.</summary>
    private int IndexFrom(int position)
    {
        int low = 0;
        int high = File.Tokens.Length;
        while (low < high)
        {
            int middle = (low + high) / 2;
            (low, high) = File.Tokens[middle].Start < position ? (middle + 1, high) : (low, middle);
        }

        return low;
    }
}
