using System.Globalization;
using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CSharp;
using Microsoft.CodeAnalysis.CSharp.Syntax;

namespace Kahuna.Tests.Simulation.Mutants;

/// <summary>Applies planted bugs to a source. Owned by its caller; one thread.</summary>
internal sealed class MutantApplier(MutantSource source)
{
    /// <summary>An anchor that is in more files says nothing about where its code went.</summary>
    private const int HoldersMax = 3;

    private readonly List<string> _errors = [];

    /// <summary>The files that a planted bug changes, with their new text. The source stays as it is.</summary>
    /// <param name="errors">What prevents that, each with file and line; empty when the bug applies.</param>
    public IReadOnlyDictionary<string, string> Apply(Mutant mutant, out IReadOnlyList<string> errors)
    {
        _errors.Clear();
        var changes = mutant.Edits.Select(edit => (Edit: edit, At: Place(mutant, edit)))
            .Where(static change => change.At is not null)
            .ToList();
        Dictionary<string, string> changed = new(StringComparer.Ordinal);
        foreach (var file in _errors.Count > 0 ? [] : changes.GroupBy(static change => change.At!.Value.File))
        {
            string text = file.Key.Text;
            int next = text.Length;

            // From the end of the file on, so that the places of the edits that are left stay right.
            foreach (var (edit, at) in file
                .OrderByDescending(static change => change.At!.Value.Start)
                .ThenByDescending(static change => change.At!.Value.End)
                .ThenByDescending(static change => change.Edit.Line))
            {
                if (at!.Value.End > next)
                {
                    Fail(mutant, edit, "changes what another edit of this bug changes");
                    break;
                }

                next = at.Value.Start;
                text = text[..next] + Replacement(text, edit, next) + text[at.Value.End..];
            }

            Check(mutant, file.Key, text);
            changed[file.Key.Path] = text;
        }

        errors = [.. _errors];
        return changed;
    }

    /// <summary>The text of an edit at a place, on lines of its own where it adds something.</summary>
    private static string Replacement(string text, MutantEdit edit, int at)
    {
        int line = text.LastIndexOf('\n', at - 1) + 1;
        string indent = text[line..(line + text.AsSpan(line).IndexOfAnyExcept(' '))];
        return edit.Kind switch
        {
            MutantEditKind.After => $"\n{indent}{edit.Text}",
            MutantEditKind.Before => $"{edit.Text}\n{indent}",
            MutantEditKind.Add => $"    {edit.Text}\n{indent}",
            _ => edit.Text,
        };
    }

    /// <summary>
    /// What an edit replaces, empty where it adds something; null, with an error, unless its anchor is at exactly one
    /// place.
    /// </summary>
    private (SourceFile File, int Start, int End)? Place(Mutant mutant, MutantEdit edit)
    {
        IReadOnlyList<SourceScope> scopes = source.Find(edit.Scope, out string? error);
        SourceToken[] anchor = SourceToken.Of(edit.Anchor);
        if (error is not null)
        {
            Fail(mutant, edit, $"{error}. {Elsewhere(anchor)}");
            return null;
        }

        if (edit.Kind == MutantEditKind.Add)
        {
            return PlaceInType(mutant, edit, scopes);
        }

        if (anchor.Length == 0)
        {
            Fail(mutant, edit, "the anchor is a comment only");
            return null;
        }

        List<(SourceFile File, int Start, int End)> found = [];
        foreach (SourceScope scope in scopes)
        {
            ReadOnlySpan<SourceToken> tokens = scope.Tokens;
            for (int at = tokens.IndexOfTokens(anchor); at >= 0; at = tokens.IndexOfTokens(anchor, at + 1))
            {
                found.Add((scope.File, tokens[at].Start, tokens[at + anchor.Length - 1].End));
            }
        }

        if (found.Count != 1)
        {
            Fail(mutant, edit, found.Count == 0 ? Missing(edit, scopes, anchor) : Ambiguous(edit, found));
            return null;
        }

        return edit.Kind switch
        {
            MutantEditKind.After => found[0] with { Start = found[0].End },
            MutantEditKind.Before => found[0] with { End = found[0].Start },
            _ => found[0],
        };
    }

    private (SourceFile File, int Start, int End)? PlaceInType(
        Mutant mutant, MutantEdit edit, IReadOnlyList<SourceScope> scopes)
    {
        foreach (SourceScope scope in scopes)
        {
            if (scope.Declaration is TypeDeclarationSyntax { CloseBraceToken: { Span.IsEmpty: false } brace })
            {
                return (scope.File, brace.SpanStart, brace.SpanStart);
            }
        }

        Fail(mutant, edit, $"\"add:\" needs \"in:\" with a type that has a body, and {edit.Scope} is none");
        return null;
    }

    private static string Ambiguous(MutantEdit edit, List<(SourceFile File, int Start, int End)> found)
    {
        string lines = string.Join(", ", found.Select(static one => one.File.LineOf(one.Start)).Distinct());
        return $"{edit.Scope} ({found[0].File.Path}) holds the anchor {found.Count} times, on line {lines}; "
            + "take the tokens beside it into the anchor and into its replacement, or name the overload, as "
            + "in Type.Member(int, string)";
    }

    private string Missing(MutantEdit edit, IReadOnlyList<SourceScope> scopes, SourceToken[] anchor)
    {
        (int Same, string Text) best = default;
        foreach (SourceScope scope in scopes)
        {
            ReadOnlySpan<SourceToken> tokens = scope.Tokens;
            for (int at = 0; at < tokens.Length; at++)
            {
                ReadOnlySpan<SourceToken> there = tokens[at..Math.Min(tokens.Length, at + anchor.Length)];
                int same = there.CountSame(anchor);
                if (same > best.Same)
                {
                    string[] words = scope.File.Text[there[0].Start..there[^1].End]
                        .Split((char[]?)null, StringSplitOptions.RemoveEmptyEntries);
                    int line = scope.File.LineOf(there[0].Start);
                    best = (same, $" Closest is line {line}: \"{string.Join(' ', words)}\".");
                }
            }
        }

        return $"{edit.Scope} ({scopes[0].File.Path}) does not hold the anchor "
            + $"\"{edit.Anchor}\".{best.Text} {Elsewhere(anchor)}";
    }

    private string Elsewhere(SourceToken[] anchor)
    {
        string[] holders = anchor.Length == 0 ? [] : [.. source.Holders(anchor).Take(HoldersMax + 1)];
        return holders.Length is 0 or > HoldersMax
            ? "If a name was renamed, rename it here; if the code was rewritten, plant the bug in the new code"
            : $"The anchor is in {string.Join(", ", holders)}: name that in \"in:\"";
    }

    private void Check(Mutant mutant, SourceFile file, string text)
    {
        SourceToken[] tokens = SourceToken.Of(text);
        if (tokens.Length == file.Tokens.Length && file.Tokens.CommonPrefix(tokens) == tokens.Length)
        {
            Fail(mutant, mutant.Edits[0], $"{file.Path} stays as it is; the bug must change it");
        }

        foreach (Diagnostic wrong in CSharpSyntaxTree.ParseText(text, SourceToken.Options).GetDiagnostics().Take(1))
        {
            string why = wrong.GetMessage(CultureInfo.InvariantCulture);
            Fail(mutant, mutant.Edits[0], $"{file.Path} would not be C#: {why}");
        }
    }

    private void Fail(Mutant mutant, MutantEdit edit, string what) =>
        _errors.Add($"{MutantFolder.Path}{mutant.Name}{MutantFolder.Extension}:{edit.Line}: {what}");
}
