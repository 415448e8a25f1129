using System.CommandLine;
using System.CommandLine.Help;
using System.CommandLine.Invocation;
using System.Reflection;
using Kahuna.Cli.Commands;
using Kahuna.Cli.Commands.Administration;
using Kahuna.Cli.Commands.Cluster;
using Kahuna.Cli.Commands.Contexts;
using Kahuna.Cli.Commands.Inputs;
using Kahuna.Cli.Commands.Keys;
using Kahuna.Cli.Commands.Locks;
using Kahuna.Cli.Commands.Sequences;
using Kahuna.Cli.Commands.Transactions;
using Kahuna.Cli.Commands.Watches;
using Kahuna.Cli.Completion;
using Kahuna.Cli.Connecting;
using Kahuna.Cli.Results;

namespace Kahuna.Cli;

/// <summary>All commands and the options that each has. Built once per command line.</summary>
internal sealed class CommandTree
{
    private static readonly (string Word, OutputFormat Format)[] s_formats =
        [("table", OutputFormat.Table), ("json", OutputFormat.Json), ("jsonl", OutputFormat.JsonLines)];

    private readonly Option<string> _output = Given.Choice(
        "--output", "Form of the results [default: table]", [.. s_formats.Select(static format => format.Word)]);

    /// <summary>Creates the tree.</summary>
    /// <param name="shell">The prompt; null: a line of the prompt is read, which has no prompt in it.</param>
    public CommandTree(CliCommand? shell = null)
    {
        _output.Aliases.Add("-o");
        _output.Recursive = true;
        Root = new RootCommand("Works with a Kahuna cluster: keys, locks, sequences, watches, users, and its health.")
        {
            ReadCommands.Get(), SetCommand.Create(), ChangeCommands.Delete(), ReadCommands.Exists(),
            ChangeCommands.Extend(), ChangeCommands.Increment(), ScanCommands.Scan(), ScanCommands.Count(),
            TransactionCommand.Create(), ScriptCommand.Create(),
            WatchCommand.Create(), LockCommands.Create(), ElectCommands.Create(), SequenceCommands.Create(),
            ClusterCommands.Status(), ClusterCommands.Members(), ClusterCommands.Partitions(),
            ClusterCommands.Leaders(), TransferCommand.Create(), TopCommand.Create(), DoctorCommand.Create(),
            SlowCommand.Create(), BenchLiteCommand.Create(), UserCommands.Create(), RoleCommands.Create(),
            TokenCommands.Create(), TokenCommands.WhoAmI(), ContextCommands.Create(), CompletionCommands.Create(),
            CompletionCommands.Complete(Parse),
        };
        Root.Subcommands.Single(static command => command.Name == "__complete").Hidden = true;
        if (shell is not null)
        {
            Root.Subcommands.Add(shell);
        }

        Root.Options.Add(_output);
        foreach (Option option in Connection.All)
        {
            Root.Options.Add(option);
        }

        Root.Directives.Clear();
        Root.Options.OfType<VersionOption>().Single().Action = new VersionLine();
        Root.Options.OfType<HelpOption>().Single().Description = "Show this help and exit";
    }

    public RootCommand Root { get; }

    /// <summary>Which cluster, and as whom.</summary>
    public ConnectionOptions Connection { get; } = new();

    /// <summary>The form that <c>--output</c> names.</summary>
    public OutputFormat FormatOf(ParseResult parsed) =>
        s_formats.FirstOrDefault(format => format.Word == parsed.GetValue(_output)).Format;

    /// <summary>Reads a command line. Words that begin with <c>@</c> are names like all others, and no files.</summary>
    public ParseResult Parse(IReadOnlyList<string> words) => Root.Parse(
        words, new ParserConfiguration { ResponseFileTokenReplacer = null, EnablePosixBundling = false });

    /// <summary>Prints the version of this tool rather than that of the process it runs in.</summary>
    private sealed class VersionLine : SynchronousCommandLineAction
    {
        public override int Invoke(ParseResult parseResult)
        {
            string version = typeof(VersionLine).Assembly
                .GetCustomAttribute<AssemblyInformationalVersionAttribute>()?.InformationalVersion ?? "0.0.0";
            parseResult.InvocationConfiguration.Output.WriteLine(version.Split('+')[0]);
            return 0;
        }
    }
}
