using System.CommandLine;
using Kahuna.Cli.Commands.Inputs;
using Kahuna.Cli.Errors;

namespace Kahuna.Cli.Commands.Running;

/// <summary>The command that runs while something is held, and for how long it is held.</summary>
internal sealed class RunOptions
{
    public Argument<string[]> Words { get; } = new("command")
    {
        Description = "The command and its arguments, behind '--'",
        Arity = ArgumentArity.OneOrMore,
    };

    public Option<TimeSpan?> Lease { get; } = Given.Time(
        "--lease", "How long it is held without a renewal; it is renewed while the command runs [default: 15s]");

    public Option<TimeSpan?> Grace { get; } = Given.Time(
        "--grace", "How long the command may take to end when it has to [default: 10s]");

    /// <summary>Adds them to a command.</summary>
    public void AddTo(CliCommand command)
    {
        command.Add(Words);
        command.Add(Lease);
        command.Add(Grace);
    }

    public TimeSpan LeaseOf(CommandCall call) => call.Get(Lease) ?? TimeSpan.FromSeconds(15);

    /// <summary>The grace; it is read before the command begins.</summary>
    /// <exception cref="CliException">It is longer than a day.</exception>
    public TimeSpan GraceOf(CommandCall call) =>
        (call.Get(Grace) ?? TimeSpan.FromSeconds(10)) is { TotalDays: <= 1 } grace
            ? grace
            : throw new CliException("--grace: it is a day at most.");
}
