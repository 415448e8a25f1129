using System.CommandLine;
using System.CommandLine.Parsing;
using Kahuna.Cli.Commands.Inputs;

namespace Kahuna.Cli.Completion;

/// <summary>Completes the last word of a command line: commands, options, their words, and names of keys.</summary>
/// <param name="parse">Reads a command line.</param>
/// <param name="names">Finds names of keys.</param>
internal sealed class Completer(Func<IReadOnlyList<string>, ParseResult> parse, IKeyNames names)
{
    /// <summary>What the last word may be, in order.</summary>
    /// <param name="words">The words behind the tool's name; the last one is completed and may be empty.</param>
    public async Task<IReadOnlyList<string>> CompleteAsync(IReadOnlyList<string> words)
    {
        string word = words.Count == 0 ? "" : words[^1];
        ParseResult parsed = parse(words);
        if (IsKey(parsed, word, words.Count > 1 ? words[^2] : ""))
        {
            return await names.FindAsync(parsed, word).ConfigureAwait(false);
        }

        // A part of a word counts as a word that is there, and would hide what may stand in its place. A part of an
        // option does not: the parser completes it.
        bool wantsOptions = word.StartsWith('-');
        ParseResult known = wantsOptions ? parsed : parse([.. words.SkipLast(1)]);
        return
        [
            .. known.GetCompletions().Select(static item => item.Label)
                .Where(label => label.StartsWith(word, StringComparison.Ordinal)
                    && label.StartsWith('-') == wantsOptions && !label.StartsWith('/'))
                .Distinct().Order(StringComparer.Ordinal),
        ];
    }

    /// <summary>The last word is the argument of a key, and no option's value.</summary>
    private static bool IsKey(ParseResult parsed, string word, string before) =>
        !word.StartsWith('-')
            && !IsOptionWithValue(parsed, before)
            && parsed.CommandResult.Command.Arguments is [KeyArgument key, ..]
            && parsed.GetResult(key) is { Tokens: [.., { } last] }
            && last.Value == word
            && parsed.CommandResult.Children.OfType<ArgumentResult>().Count(HasTokens) == 1;

    private static bool HasTokens(ArgumentResult argument) => argument.Tokens.Count > 0;

    private static bool IsOptionWithValue(ParseResult parsed, string word)
    {
        for (Command? command = parsed.CommandResult.Command; command is not null;
            command = command.Parents.OfType<Command>().FirstOrDefault())
        {
            if (command.Options.Any(option => option.ValueType != typeof(bool)
                && (option.Name == word || option.Aliases.Contains(word))))
            {
                return true;
            }
        }

        return false;
    }
}
