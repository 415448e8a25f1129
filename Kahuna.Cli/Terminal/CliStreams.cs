namespace Kahuna.Cli.Terminal;

/// <summary>Where a command reads and writes. Immutable.</summary>
/// <param name="Input">Standard input; bytes.</param>
/// <param name="Output">Standard output; bytes.</param>
/// <param name="Error">Standard error.</param>
internal sealed record CliStreams(Stream Input, Stream Output, TextWriter Error)
{
    public bool IsOutputTerminal { get; init; }

    public bool IsErrorTerminal { get; init; }
}
