using System.Buffers;
using System.CommandLine;
using Kahuna.Cli.Completion;
using Kahuna.Cli.Terminal;

namespace Kahuna.Cli.Shell;

/// <summary>Completes words of a line of the shell. Used by one shell.</summary>
/// <param name="given">The options of the shell.</param>
/// <param name="parse">Reads the words of a line.</param>
/// <param name="names">Finds names of keys.</param>
internal sealed class ShellCompletion(
    GivenOptions given, Func<IReadOnlyList<string>, ParseResult> parse, IKeyNames names) : IWordCompletion
{
    /// <summary>A word of these needs no quotes.</summary>
    private static readonly SearchValues<char> s_plain = SearchValues.Create(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./@%+,-:=");

    private readonly Completer _completer = new(parse, names);

    /// <inheritdoc/>
    public async Task<WordChoice> CompleteAsync(string line, CancellationToken ct)
    {
        IReadOnlyList<QuotedWord> cut;
        string[] words;
        try
        {
            cut = QuotedWords.Cut(line, isShell: true);
            words = [.. cut.Select(static word => QuotedWords.Text(word.Bytes))];
        }
        catch (FormatException)
        {
            return WordChoice.None;
        }

        bool isNew = line.Length == 0 || (char.IsWhiteSpace(line[^1]) && (cut.Count == 0 || cut[^1].Quote is null));
        (int start, string word) = isNew ? (line.Length, "") : (cut[^1].Start, words[^1]);
        if (isNew)
        {
            words = [.. words, ""];
        }

        if (words is ["kahuna", _, ..])
        {
            words = words[1..];
        }

        IReadOnlyList<string> found = await _completer.CompleteAsync(given.Before(words)).WaitAsync(ct)
            .ConfigureAwait(false);
        if (words.Length == 1 && !word.StartsWith('-'))
        {
            found = [.. found.Concat(ShellSession.Words.Where(own => own.StartsWith(word, StringComparison.Ordinal)))
                .Order(StringComparer.Ordinal)];
        }

        return found.Count == 0 ? WordChoice.None : new WordChoice(start, found, InQuotes(found));
    }

    /// <summary>
    /// The common beginning of words as it stands in a line; with the blank behind it when it is the only one.
    /// </summary>
    private static string InQuotes(IReadOnlyList<string> words)
    {
        string common = words[0];
        foreach (string word in words)
        {
            common = common[..common.AsSpan().CommonPrefixLength(word)];
        }

        if (common.Length > 0 && char.IsHighSurrogate(common[^1]))
        {
            common = common[..^1];
        }

        bool isWhole = words.Count == 1;
        string end = isWhole ? " " : "";
        if (common.Length > 0 && !common.AsSpan().ContainsAnyExcept(s_plain))
        {
            return common + end;
        }

        string quoted = common.Length == 0 && !isWhole
            ? ""
            : $"\"{ShownText.Of(common).Replace("\"", "\\\"", StringComparison.Ordinal)}";
        return isWhole ? $"{quoted}\"{end}" : quoted;
    }
}
