namespace Kahuna.Cli.Terminal;

/// <summary>Asks the person at the terminal. Used by one command at a time.</summary>
internal interface IPrompt
{
    /// <summary>There is a person to ask.</summary>
    bool IsThere { get; }

    /// <summary>Asks for a text that the terminal does not show; null when the person gave up.</summary>
    /// <param name="question">What is asked for, without a colon.</param>
    string? ReadSecret(string question);
}
