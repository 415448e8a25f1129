using System.CommandLine;
using Kahuna.Cli.Commands;
using Kahuna.Cli.Connecting;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Terminal;

namespace Kahuna.Cli.Shell;

/// <summary>
/// Reads lines and carries them out, at a terminal or from standard input. All lines share the client of the shell.
/// Used once.
/// </summary>
/// <param name="call">The call of the shell.</param>
/// <param name="given">The options that hold for all lines.</param>
/// <param name="ports">Reads and carries out lines.</param>
internal sealed class ShellSession(CommandCall call, GivenOptions given, ShellPorts ports)
{
    private const string Help = "help";

    private static readonly string[] s_ends = ["exit", "quit"];
    private static readonly string[] s_secrets = ["password", "secret", "token"];
    private bool _isToldOfHistory;

    /// <summary>What lines may be besides commands of the tool.</summary>
    public static IReadOnlyList<string> Words { get; } = [.. s_ends, Help];

    /// <summary>Carries out all lines.</summary>
    /// <param name="isFailFast">The first command that fails ends it.</param>
    /// <returns>The exit code of the last command; 0 without any, and after Ctrl+D at a terminal.</returns>
    public async Task<int> RunAsync(bool isFailFast)
    {
        if (call.Environment.Terminal is { } terminal)
        {
            int exitCode = await RunAtAsync(terminal, isFailFast).ConfigureAwait(false);
            return isFailFast ? exitCode : ExitCode.Done;
        }

        InputLines lines = new(call.Environment.Streams.Input);
        return await RunAsync(() => lines.ReadAsync(call.Stop), () => $"Line {lines.Number}: ", isFailFast)
            .ConfigureAwait(false);
    }

    private async Task<int> RunAtAsync(ITerminal terminal, bool isFailFast)
    {
        History history = History.Open(
            Path.Combine(Path.GetDirectoryName(Path.GetFullPath(new ContextFile(call.Environment).Path))!, "history"));
        Tell(history);
        LineEditor editor = new(
            terminal, history, new ShellCompletion(given, ports.Parse, new OpenKeyNames(call, ports.Connection)));
        return await RunAsync(
            async () =>
            {
                string? line = await editor.ReadAsync(Prompt(), call.Stop).ConfigureAwait(false);
                Remember(history, line);
                return line;
            },
            static () => "",
            isFailFast).ConfigureAwait(false);
    }

    private async Task<int> RunAsync(Func<Task<string?>> read, Func<string> place, bool isFailFast)
    {
        int exitCode = ExitCode.Done;
        while (await read().ConfigureAwait(false) is { } line)
        {
            IReadOnlyList<string>? words = WordsOf(line, place());
            if (words is { Count: 0 })
            {
                continue;
            }

            if (words is [var only] && s_ends.Contains(only))
            {
                break;
            }

            exitCode = words is null ? ExitCode.Usage : await CarryOutAsync(words).ConfigureAwait(false);
            call.Stop.ThrowIfCancellationRequested();
            if (isFailFast && exitCode != ExitCode.Done)
            {
                break;
            }
        }

        return exitCode;
    }

    private async Task<int> CarryOutAsync(IReadOnlyList<string> words)
    {
        if (words[0] == ShellCommand.Word)
        {
            call.Note("This is the shell already; 'exit' ends it.");
            return ExitCode.Usage;
        }

        using Interrupts.LineStop stop = call.Environment.Interrupts.BeginLine();
        using CancellationTokenSource both = CancellationTokenSource.CreateLinkedTokenSource(stop.Token, call.Stop);
        return await ports.RunAsync(words is [Help] ? ["--help"] : given.Before(words), both.Token)
            .ConfigureAwait(false);
    }

    /// <summary>The words of a line; null: they cannot be read, and the person was told.</summary>
    private string[]? WordsOf(string line, string place)
    {
        try
        {
            string[] words = QuotedWords.TextOf(line, isShell: true);

            // Lines can be pasted from a page that shows whole command lines.
            return words is ["kahuna", ..] ? words[1..] : words;
        }
        catch (FormatException failure)
        {
            call.Note($"{place}{failure.Message}.");
            return null;
        }
    }

    /// <summary>
    /// The file gets a line that is a command and takes no secrets: what cannot be read may hold a password that was
    /// typed at the wrong place. A line that begins with a blank, or has a wrong option for a secret, is forgotten.
    /// </summary>
    private void Remember(History history, string? line)
    {
        if (string.IsNullOrWhiteSpace(line) || char.IsWhiteSpace(line[0]))
        {
            return;
        }

        CliCommand? command = CommandOf(line);
        if (command is not null || !NamesSecret(line))
        {
            history.Add(line, isSaved: command is { TakesSecrets: false });
        }

        Tell(history);
    }

    private void Tell(History history)
    {
        if (history.Problem is { } problem && !_isToldOfHistory)
        {
            call.Note(problem);
            _isToldOfHistory = true;
        }
    }

    /// <summary>The command of a line; null: the line cannot be carried out.</summary>
    private CliCommand? CommandOf(string line)
    {
        try
        {
            string[] words = QuotedWords.TextOf(line, isShell: true);
            ParseResult parsed = ports.Parse(words is ["kahuna", ..] ? words[1..] : words);
            return parsed.CommandResult.Command is CliCommand { Work: not null } command && parsed.Errors.Count == 0
                ? command
                : null;
        }
        catch (FormatException)
        {
            return null;
        }
    }

    /// <summary>
    /// An option of such a name stands in the line. None of the tool has a secret behind it, but a person may expect
    /// one to.
    /// </summary>
    private static bool NamesSecret(string line) => line.Split(' ').Any(static word =>
        word.StartsWith('-') && s_secrets.Any(secret => word.Contains(secret, StringComparison.OrdinalIgnoreCase)));

    /// <summary>The context in use, or the first node; read for each line, since a line may change it.</summary>
    private string Prompt()
    {
        try
        {
            ParseResult none = ports.Parse(given.Before([]));
            return $"kahuna {ports.Connection.NameOf(none, call.Environment)}> ";
        }
        catch (CliException)
        {
            return "kahuna> ";
        }
    }
}
