using System.CommandLine;
using Kahuna.Cli;
using Kahuna.Cli.Shell;
using Kahuna.Cli.Terminal;
using Kahuna.Tests.Tidy;

namespace Kahuna.Tests.Cli;

/// <summary>The page of the command line shows each command, and what it shows can be used.</summary>
public sealed class PageTests
{
    private const string Page = "docs/cli.md";

    private readonly CommandTree _tree =
        new(ShellCommand.Create(static () => throw new InvalidOperationException("No line is read here.")));

    [Fact]
    public void Each_command_has_an_example()
    {
        HashSet<string> shown = [.. Examples().Select(words => PathOf(_tree.Parse(words).CommandResult.Command))];
        Findings.AssertNone(Leaves(_tree.Root).Select(PathOf).Where(path => !shown.Contains(path)));
    }

    [Fact]
    public void Each_example_is_a_command_line_of_the_tool() =>
        Findings.AssertNone(
            from words in Examples()
            let parsed = _tree.Parse(words)
            let problem = parsed.Errors.FirstOrDefault()?.Message ?? Misspelling.UnknownOption(parsed)
            where problem is not null
            select $"kahuna {string.Join(' ', words)}: {problem}");

    [Fact]
    public void Each_option_of_a_command_is_in_its_help()
    {
        IEnumerable<string> silent =
            from command in Leaves(_tree.Root)
            from option in command.Options
            where string.IsNullOrWhiteSpace(option.Description)
            select $"{PathOf(command)} {option.Name}";
        Findings.AssertNone(silent.Concat(
            Leaves(_tree.Root).Where(static command => string.IsNullOrWhiteSpace(command.Description)).Select(PathOf)));
    }

    private static IEnumerable<Command> Leaves(Command command) => command.Subcommands.Count == 0
        ? [command]
        : command.Subcommands.Where(static child => !child.Hidden).SelectMany(Leaves);

    private static string PathOf(Command command) =>
        command.Parents.OfType<Command>().FirstOrDefault() is { Parents: var above } parent && above.Any()
            ? $"{PathOf(parent)} {command.Name}"
            : command.Name;

    /// <summary>The words of each call of the tool in the page's blocks for a shell.</summary>
    private static IEnumerable<string[]> Examples()
    {
        bool isShell = false;
        string before = "";
        foreach (string line in Repository.Lines(Page))
        {
            if (line.StartsWith("```", StringComparison.Ordinal))
            {
                isShell = line == "```bash";
            }
            else if (isShell && line.EndsWith('\\'))
            {
                before += line[..^1];
            }
            else if (isShell)
            {
                foreach (string part in (before + line).Split(" | ").SelectMany(static part => part.Split("$(")))
                {
                    string call = part.Trim();
                    if (call.StartsWith("kahuna ", StringComparison.Ordinal))
                    {
                        string words = call["kahuna ".Length..].TrimEnd(')');
                        yield return [.. QuotedWords.TextOf(words).TakeWhile(static word => word is not (">" or "<"))];
                    }
                }

                before = "";
            }
        }
    }
}
