namespace Kahuna.Cli.Terminal;

/// <summary>What a command has around it: streams, environment variables and a person to ask. Immutable.</summary>
/// <param name="Streams">Where it reads and writes.</param>
/// <param name="Variables">Values of environment variables by name; null: not set.</param>
/// <param name="Prompt">Asks the person at the terminal.</param>
internal sealed record CliEnvironment(CliStreams Streams, Func<string, string?> Variables, IPrompt Prompt)
{
    /// <summary>The value of a variable; null when it is not set or empty.</summary>
    public string? Variable(string name) => Variables(name) is { Length: > 0 } value ? value : null;

    /// <summary>How long ago the process began; a person who completes a word has waited for so long.</summary>
    public Func<TimeSpan> Age { get; init; } = static () => TimeSpan.Zero;

    /// <summary>
    /// Called by a command that connects nowhere where the machine's authorities count: they need not be read.
    /// </summary>
    public Action LeaveOutMachineAuthorities { get; init; } = static () => { };

    /// <summary>Where a person types lines; null: there is no terminal.</summary>
    public ITerminal? Terminal { get; init; }

    /// <summary>What Ctrl+C ends.</summary>
    public Interrupts Interrupts { get; init; } = new();

    /// <summary>Text on a terminal may have colours.</summary>
    public bool MayColour => Variable("NO_COLOR") is null && Variable("TERM") != "dumb";
}
