using System.Text;

namespace Kahuna.Cli.Terminal;

/// <summary>
/// The console of the process. Between two keys of a line the next one is read already, so that the system does not
/// show it; after a key that ends the line none is, so that the command has the keyboard. Used by one shell.
/// </summary>
internal sealed class ConsoleTerminal : ITerminal
{
    private const string PasteBegins = "[200~";
    private const string PasteEnds = "\x1b[201~";

    /// <summary>A paste has no more characters; the rest is left out.</summary>
    private const int PasteLengthMax = 1 << 20;

    private readonly Stream _output = Console.OpenStandardOutput();
    private Task<TerminalKey>? _next;

    /// <summary>The process has a terminal to read from and to write to.</summary>
    public static bool IsThere => !Console.IsInputRedirected && !Console.IsOutputRedirected;

    /// <inheritdoc/>
    public int Width
    {
        get
        {
            try
            {
                return Console.WindowWidth is > 0 and int width ? Math.Max(20, width) : 80;
            }
            catch (IOException)
            {
                return 80;
            }
        }
    }

    /// <inheritdoc/>
    public async ValueTask<TerminalKey?> ReadKeyAsync(CancellationToken ct)
    {
        if (_next is null)
        {
            Console.TreatControlCAsInput = true;
            Write("\x1b[?2004h");
        }

        TerminalKey key;
        try
        {
            key = await (_next ?? Task.Run(Read, ct)).WaitAsync(ct).ConfigureAwait(false);
        }
        catch (InvalidOperationException)
        {
            return null;
        }

        if (key.Kind is TerminalKeyKind.Enter or TerminalKeyKind.Interrupt or TerminalKeyKind.EndOfInput)
        {
            _next = null;
            Write("\x1b[?2004l");
            Console.TreatControlCAsInput = false;
        }
        else
        {
            _next = Task.Run(Read, CancellationToken.None);
        }

        return key;
    }

    /// <inheritdoc/>
    public void Write(string text)
    {
        _output.Write(Encoding.UTF8.GetBytes(text));
        _output.Flush();
    }

    private static TerminalKey Read()
    {
        ConsoleKeyInfo key = Console.ReadKey(intercept: true);
        bool isControl =
            key.Modifiers.HasFlag(ConsoleModifiers.Control) && !key.Modifiers.HasFlag(ConsoleModifiers.Alt);
        TerminalKeyKind kind = key.Key switch
        {
            ConsoleKey.Enter => TerminalKeyKind.Enter,
            ConsoleKey.Tab => TerminalKeyKind.Tab,
            ConsoleKey.Backspace => TerminalKeyKind.Backspace,
            ConsoleKey.Delete => TerminalKeyKind.Delete,
            ConsoleKey.LeftArrow => isControl ? TerminalKeyKind.WordLeft : TerminalKeyKind.Left,
            ConsoleKey.RightArrow => isControl ? TerminalKeyKind.WordRight : TerminalKeyKind.Right,
            ConsoleKey.UpArrow => TerminalKeyKind.Up,
            ConsoleKey.DownArrow => TerminalKeyKind.Down,
            ConsoleKey.Home => TerminalKeyKind.Home,
            ConsoleKey.End => TerminalKeyKind.End,
            ConsoleKey.Escape => TerminalKeyKind.Escape,
            _ when isControl => OfControl(key.Key),
            _ => TerminalKeyKind.Text,
        };
        return kind switch
        {
            TerminalKeyKind.Escape => AfterEscape(),
            TerminalKeyKind.Text when key.KeyChar == '\n' => new TerminalKey(TerminalKeyKind.Enter),
            TerminalKeyKind.Text => TextOf(key.KeyChar),
            _ => new TerminalKey(kind),
        };
    }

    private static TerminalKeyKind OfControl(ConsoleKey key) => key switch
    {
        ConsoleKey.A => TerminalKeyKind.Home,
        ConsoleKey.B => TerminalKeyKind.Left,
        ConsoleKey.C => TerminalKeyKind.Interrupt,
        ConsoleKey.D => TerminalKeyKind.EndOfInput,
        ConsoleKey.E => TerminalKeyKind.End,
        ConsoleKey.F => TerminalKeyKind.Right,
        ConsoleKey.G => TerminalKeyKind.Escape,
        ConsoleKey.H => TerminalKeyKind.Backspace,
        ConsoleKey.J or ConsoleKey.M => TerminalKeyKind.Enter,
        ConsoleKey.K => TerminalKeyKind.DeleteToEnd,
        ConsoleKey.L => TerminalKeyKind.ClearScreen,
        ConsoleKey.N => TerminalKeyKind.Down,
        ConsoleKey.P => TerminalKeyKind.Up,
        ConsoleKey.R => TerminalKeyKind.Search,
        ConsoleKey.U => TerminalKeyKind.DeleteToStart,
        ConsoleKey.W => TerminalKeyKind.DeleteWord,
        _ => TerminalKeyKind.Other,
    };

    /// <summary>A character outside of the first 65,536 comes in two halves.</summary>
    private static TerminalKey TextOf(char letter) => char.IsHighSurrogate(letter)
        ? new TerminalKey(TerminalKeyKind.Text, $"{letter}{Console.ReadKey(intercept: true).KeyChar}")
        : char.IsControl(letter) ? new TerminalKey(TerminalKeyKind.Other)
        : new TerminalKey(TerminalKeyKind.Text, letter.ToString());

    /// <summary>The escape key, a sequence that the console does not know, or the begin of a paste.</summary>
    private static TerminalKey AfterEscape()
    {
        StringBuilder sequence = new();
        while (sequence.Length < PasteBegins.Length && Console.KeyAvailable)
        {
            sequence.Append(Console.ReadKey(intercept: true).KeyChar);
            if (sequence[^1] == '~')
            {
                break;
            }
        }

        return sequence.ToString() switch
        {
            PasteBegins => new TerminalKey(TerminalKeyKind.Text, Pasted()),
            "" => new TerminalKey(TerminalKeyKind.Escape),
            _ => new TerminalKey(TerminalKeyKind.Other),
        };
    }

    private static string Pasted()
    {
        StringBuilder text = new();
        StringBuilder end = new();
        while (end.Length < PasteEnds.Length)
        {
            char letter = Console.ReadKey(intercept: true).KeyChar;
            if (letter == PasteEnds[end.Length])
            {
                end.Append(letter);
                continue;
            }

            if (text.Length < PasteLengthMax)
            {
                text.Append(end).Append(letter);
            }

            end.Clear();
        }

        return text.ToString();
    }
}
