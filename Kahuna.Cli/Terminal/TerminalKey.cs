namespace Kahuna.Cli.Terminal;

/// <summary>A key that was pressed, or a text that was typed or pasted. Immutable.</summary>
/// <param name="Kind">Which key.</param>
/// <param name="Text">What was typed or pasted; empty for the other keys.</param>
internal sealed record TerminalKey(TerminalKeyKind Kind, string Text = "");

/// <summary>The keys that an editor of lines knows.</summary>
internal enum TerminalKeyKind
{
    /// <summary>None of the others.</summary>
    Other = 0,
    Text,
    Enter,
    Tab,
    Backspace,
    Delete,
    Left,
    Right,
    WordLeft,
    WordRight,
    Home,
    End,
    Up,
    Down,

    /// <summary>Ctrl+C.</summary>
    Interrupt,

    /// <summary>Ctrl+D.</summary>
    EndOfInput,

    /// <summary>Ctrl+K.</summary>
    DeleteToEnd,

    /// <summary>Ctrl+U.</summary>
    DeleteToStart,

    /// <summary>Ctrl+W.</summary>
    DeleteWord,

    /// <summary>Ctrl+L.</summary>
    ClearScreen,

    /// <summary>Ctrl+R.</summary>
    Search,

    /// <summary>Escape, or Ctrl+G.</summary>
    Escape,
}
