namespace Kahuna.Cli.Errors;

/// <summary>A command cannot go on.</summary>
/// <param name="message">One sentence that says what happened and what to do.</param>
/// <param name="exitCode">One of <see cref="Errors.ExitCode"/>.</param>
internal sealed class CliException(string message, int exitCode = ExitCode.Usage) : Exception(message)
{
    public int ExitCode { get; } = exitCode;
}
