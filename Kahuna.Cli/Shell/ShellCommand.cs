using System.CommandLine;
using Kahuna.Cli.Commands;
using Kahuna.Cli.Commands.Inputs;
using Kahuna.Cli.Connecting;

namespace Kahuna.Cli.Shell;

/// <summary><c>shell</c>: a prompt that carries out lines with one connection. Static.</summary>
internal static class ShellCommand
{
    public const string Word = "shell";

    /// <summary>The command.</summary>
    /// <param name="ports">Makes what the shell needs of the tool.</param>
    public static CliCommand Create(Func<ShellPorts> ports)
    {
        Option<bool> failFast = Given.Flag(
            "--fail-fast", "End at the first command that fails, with its exit code");
        return new CliCommand(
            Word, "Carry out lines that are typed, or read from standard input, with one connection", call =>
            {
                ShellSession session = new(call, new GivenOptions(call), ports());
                return session.RunAsync(call.Get(failFast));
            })
        {
            failFast,
        };
    }
}

/// <summary>What a shell needs of the tool. Immutable.</summary>
/// <param name="Parse">Reads the words of a line.</param>
/// <param name="Connection">The options of the connection in what <paramref name="Parse"/> returns.</param>
/// <param name="RunAsync">Carries out the words of a line; returns the exit code.</param>
internal sealed record ShellPorts(
    Func<IReadOnlyList<string>, ParseResult> Parse,
    ConnectionOptions Connection,
    Func<IReadOnlyList<string>, CancellationToken, Task<int>> RunAsync);
