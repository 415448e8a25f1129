using System.CommandLine;
using System.CommandLine.Parsing;

namespace Kahuna.Cli;

/// <summary>Finds the word that was meant. Static, any thread.</summary>
internal static class Misspelling
{
    /// <summary>
    /// The first word that looks like an option and is none; null: there is none. Otherwise it would be taken as a key
    /// or a value. Behind <c>--</c> every word is what it is.
    /// </summary>
    public static string? UnknownOption(ParseResult parsed) => parsed.Tokens
        .TakeWhile(static token => token.Type != TokenType.DoubleDash)
        .Where(static token => token.Type == TokenType.Argument && LooksLikeOption(token.Value))
        .Select(static token => token.Value)
        .FirstOrDefault();

    /// <summary>The known word that is nearest to a given one; null: none is near.</summary>
    /// <param name="word">What was written.</param>
    /// <param name="command">The command that it was written for.</param>
    public static string? Nearest(string word, Command command)
    {
        IEnumerable<string> known = word.StartsWith('-')
            ? OptionsOf(command)
            : command.Subcommands.Where(static child => !child.Hidden).Select(static child => child.Name);
        (string? best, int distance) = known
            .Select(candidate => ((string?)candidate, Distance(word, candidate)))
            .DefaultIfEmpty((null, int.MaxValue))
            .MinBy(static pair => pair.Item2);
        return distance <= Math.Max(1, word.Length / 3) ? best : null;
    }

    /// <summary>All options that a command takes, also those of the commands above it.</summary>
    public static IEnumerable<string> OptionsOf(Command command)
    {
        IEnumerable<string> own = command.Options.Select(static option => option.Name);
        return command.Parents.OfType<Command>().FirstOrDefault() is { } parent
            ? own.Concat(OptionsOf(parent))
            : own;
    }

    private static bool LooksLikeOption(string word) =>
        word.Length > 1 && word[0] == '-' && (word[1] == '-' || char.IsAsciiLetter(word[1]));

    /// <summary>Letters that have to be added, removed, replaced or swapped with their neighbour.</summary>
    private static int Distance(string a, string b)
    {
        int[,] steps = new int[a.Length + 1, b.Length + 1];
        for (int i = 0; i <= a.Length; i++)
        {
            for (int j = 0; j <= b.Length; j++)
            {
                steps[i, j] = i == 0 || j == 0
                    ? i + j
                    : Math.Min(
                        Math.Min(steps[i - 1, j], steps[i, j - 1]) + 1,
                        steps[i - 1, j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1));
                if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                {
                    steps[i, j] = Math.Min(steps[i, j], steps[i - 2, j - 2] + 1);
                }
            }
        }

        return steps[a.Length, b.Length];
    }
}
