using System.CommandLine;

namespace Kahuna.Cli.Commands;

/// <summary>
/// A command of the tool: its words, options and arguments, and what it does. The groups of commands make them, one
/// file per noun. Built once per tree.
/// </summary>
internal sealed class CliCommand : Command
{
    /// <summary>Creates a command that does something.</summary>
    /// <param name="name">Its word.</param>
    /// <param name="description">One sentence for the help, without a dot.</param>
    /// <param name="work">Carries it out; returns the exit code.</param>
    public CliCommand(string name, string description, Func<CommandCall, Task<int>> work)
        : base(name, description) => Work = work;

    /// <summary>Creates a command that has others below it.</summary>
    public CliCommand(string name, string description)
        : base(name, description)
    {
    }

    /// <summary>Carries the command out; null: it only has others below it.</summary>
    public Func<CommandCall, Task<int>>? Work { get; }

    /// <summary>
    /// An option of it is about a password or another secret. The history of the shell does not save such a line.
    /// </summary>
    public bool TakesSecrets => Options.Any(static option =>
        option.Name.Contains("password", StringComparison.Ordinal)
        || option.Name.Contains("secret", StringComparison.Ordinal));
}
