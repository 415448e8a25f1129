namespace Kahuna.Cli.Terminal;

/// <summary>A keyboard and one line of a screen. Used by one shell, which is the only reader of keys.</summary>
internal interface ITerminal
{
    /// <summary>Columns of the screen; 20 or more.</summary>
    int Width { get; }

    /// <summary>Waits for a key; null: there will be none.</summary>
    /// <param name="ct">Ends the wait.</param>
    ValueTask<TerminalKey?> ReadKeyAsync(CancellationToken ct);

    /// <summary>Writes text with escape sequences, at once.</summary>
    void Write(string text);
}
