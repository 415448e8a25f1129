using System.CommandLine;
using System.CommandLine.Help;
using Kahuna.Cli.Commands;
using Kahuna.Cli.Connecting;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Results;
using Kahuna.Cli.Shell;
using Kahuna.Cli.Terminal;

namespace Kahuna.Cli;

/// <summary>The tool without its process: from words to exit code. Used by one command at a time.</summary>
internal sealed class CliApp : IAsyncDisposable
{
    private const string Name = "kahuna";
    private readonly CliEnvironment _environment;
    private readonly ClientSource _clients;

    /// <summary>Creates the tool.</summary>
    /// <param name="environment">Streams, variables and the person.</param>
    public CliApp(CliEnvironment environment)
        : this(environment, new ClientSource(environment))
    {
    }

    /// <summary>Carries out the lines of a shell, with the client of the shell.</summary>
    private CliApp(CliEnvironment environment, ClientSource clients)
    {
        _environment = environment;
        _clients = clients;
    }

    /// <summary>Runs one command line.</summary>
    /// <param name="words">The words behind the tool's name.</param>
    /// <param name="stop">Ends the command, as Ctrl+C does.</param>
    public async Task<int> RunAsync(IReadOnlyList<string> words, CancellationToken stop)
    {
        CommandTree tree = new(ShellCommand.Create(PortsOfShell));
        words = words.Count == 0 && _environment.Terminal is not null ? [ShellCommand.Word] : words;
        ParseResult parsed = tree.Parse(words);
        if (parsed.Action is HelpAction
            || parsed.GetResult(tree.Root.Options.OfType<VersionOption>().Single()) is not null)
        {
            return await ShowAsync(parsed).ConfigureAwait(false);
        }

        if (parsed.CommandResult.Command == tree.Root && words.Count == 0)
        {
            await ShowAsync(tree.Parse(["--help"])).ConfigureAwait(false);
            return ExitCode.Usage;
        }

        if (UsageError(parsed) is { } error)
        {
            return Fail(error, ExitCode.Usage);
        }

        Output output = new(_environment, tree.FormatOf(parsed));
        CommandCall call = new(parsed, tree.Connection, _environment, _clients, output, stop);
        return await RunAsync(call, ((CliCommand)parsed.CommandResult.Command).Work!).ConfigureAwait(false);
    }

    /// <inheritdoc/>
    public ValueTask DisposeAsync() => _clients.DisposeAsync();

    private ShellPorts PortsOfShell()
    {
        CommandTree lines = new();
        return new ShellPorts(lines.Parse, lines.Connection, RunLineAsync);
    }

    /// <summary>
    /// A line has the client of the shell, and neither its terminal nor its standard input. The machine's authorities
    /// may count for the next one.
    /// </summary>
    private Task<int> RunLineAsync(IReadOnlyList<string> words, CancellationToken stop)
    {
        CliEnvironment line = _environment with
        {
            Streams = _environment.Streams with { Input = new NoInput() },
            Terminal = null,
            LeaveOutMachineAuthorities = static () => { },
        };
        return new CliApp(line, _clients).RunAsync(words, stop);
    }

    private async Task<int> RunAsync(CommandCall call, Func<CommandCall, Task<int>> work)
    {
        try
        {
            int exitCode = await work(call).ConfigureAwait(false);
            call.Output.Flush();
            return exitCode;
        }
        catch (OutputClosedException)
        {
            return ExitCode.Done;
        }
        catch (Exception failure)
        {
            TryFlush(call.Output);
            (string sentence, int exitCode) = FailureText.Of(failure, _clients.IsSignedIn);
            return Fail(sentence, exitCode);
        }
    }

    /// <summary>Results that came before a failure are shown.</summary>
    private static void TryFlush(Output output)
    {
        try
        {
            output.Flush();
        }
        catch (Exception failure) when (failure is OutputClosedException or IOException)
        {
            // The failure before is the one to tell.
        }
    }

    /// <summary>What is wrong with the words; null: nothing.</summary>
    private static string? UsageError(ParseResult parsed)
    {
        Command command = parsed.CommandResult.Command;
        string path = PathOf(command);
        bool isGroup = command is not CliCommand { Work: not null };
        string? word = parsed.UnmatchedTokens.FirstOrDefault();
        if (isGroup && word?.StartsWith('-') != true)
        {
            string meant = word is not null && Misspelling.Nearest(word, command) is { } near
                ? $" Did you mean '{near}'?"
                : "";
            return word is null
                ? $"'{path}' needs one of: {string.Join(", ", command.Subcommands.Select(static child => child.Name))}."
                : $"'{word}' is no command of '{path}'.{meant} Try '{path} --help'.";
        }

        if (Misspelling.UnknownOption(parsed) is { } option)
        {
            string meant = Misspelling.Nearest(option, command) is { } near ? $" Did you mean {near}?" : "";
            return $"'{option}' is no option of '{path}'.{meant} A name or value that begins with '-' stands behind "
                + "'--'.";
        }

        return parsed.Errors.Count == 0 ? null
            : parsed.UnmatchedTokens.Count > 0
                ? $"'{parsed.UnmatchedTokens[0]}' is one word too many for '{path}'; put blanks in quotes. "
                    + $"Try '{path} --help'."
            : $"{parsed.Errors[0].Message} Try '{path} --help'.";
    }

    private static string PathOf(Command command) => command.Parents.OfType<Command>().FirstOrDefault() is { } parent
        ? $"{PathOf(parent)} {command.Name}"
        : Name;

    private async Task<int> ShowAsync(ParseResult parsed)
    {
        using StringWriter text = new();
        InvocationConfiguration configuration =
            new() { Output = text, Error = _environment.Streams.Error, ProcessTerminationTimeout = null };
        int exitCode = await parsed.InvokeAsync(configuration, CancellationToken.None).ConfigureAwait(false);
        Output output = new(_environment, OutputFormat.Table);
        output.WriteLine(text.ToString().TrimEnd());
        output.Flush();
        return exitCode;
    }

    private int Fail(string sentence, int exitCode)
    {
        bool isColoured = _environment.Streams.IsErrorTerminal && _environment.MayColour;
        string line = $"{Name}: {ShownText.Sentence(sentence)}";
        _environment.Streams.Error.WriteLine(isColoured ? $"\x1b[31m{line}\x1b[0m" : line);
        return exitCode;
    }
}
