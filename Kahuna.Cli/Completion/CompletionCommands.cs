using System.Buffers;
using System.CommandLine;
using Kahuna.Cli.Commands;
using Kahuna.Cli.Commands.Inputs;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Terminal;

namespace Kahuna.Cli.Completion;

/// <summary><c>completion</c>, and the hidden command that the scripts of the shells call. Static.</summary>
internal static class CompletionCommands
{
    /// <summary>
    /// A shell takes these as one word and as they are. Other names are not offered: each shell would need its own
    /// quotes.
    /// </summary>
    private static readonly SearchValues<char> s_plain = SearchValues.Create(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./@%+,-");

    /// <summary>How long a person waits for names without noticing, start of the process included.</summary>
    private static readonly TimeSpan s_patience = TimeSpan.FromMilliseconds(300);

    /// <summary>What is left to print the names and to end the process.</summary>
    private static readonly TimeSpan s_end = TimeSpan.FromMilliseconds(10);

    private static readonly TimeSpan s_patienceMax = TimeSpan.FromSeconds(10);

    public static CliCommand Create()
    {
        Argument<string> shell = Given.ChoiceArgument(
            "shell", "bash, zsh, fish or pwsh", [.. CompletionScripts.ByShell.Keys]);
        return new CliCommand("completion", "Print the script that makes a shell complete this tool's commands", call =>
        {
            call.Output.WriteLine(CompletionScripts.ByShell[call.Get(shell)]);
            return Task.FromResult(ExitCode.Done);
        })
        {
            shell,
        };
    }

    /// <summary>The hidden command.</summary>
    /// <param name="parse">Reads a command line.</param>
    public static CliCommand Complete(Func<IReadOnlyList<string>, ParseResult> parse)
    {
        Argument<string[]> words = new("words") { Arity = ArgumentArity.ZeroOrMore };
        return new CliCommand("__complete", "Print what the last word may be", async call =>
        {
            KeyNames names = new(call.Options, call.Environment)
            {
                Patience = PatienceOf(call) - call.Environment.Age() - s_end,
            };
            Completer completer = new(parse, names);
            string[] given = call.Parsed.GetValue(words) ?? [];
            foreach (string found in await completer.CompleteAsync(given).ConfigureAwait(false))
            {
                if (!found.AsSpan().ContainsAnyExcept(s_plain))
                {
                    call.Output.WriteLine(found);
                }
            }

            return ExitCode.Done;
        })
        {
            words,
        };
    }

    private static TimeSpan PatienceOf(CommandCall call) =>
        call.Environment.Variable("KAHUNA_COMPLETION_TIME") is { } text && SpanText.TryParse(text, out TimeSpan given)
            && given > TimeSpan.Zero && given <= s_patienceMax
            ? given
            : s_patience;
}
