using System.Globalization;
using System.Text;
using Kahuna.Cli.Terminal;

namespace Kahuna.Cli.Shell;

/// <summary>
/// Reads lines at a terminal: keys in, screen out. The line stays in one row of the screen, which shows the part around
/// the cursor. Used by one shell.
/// </summary>
/// <param name="terminal">The keyboard and the screen.</param>
/// <param name="history">The lines before.</param>
/// <param name="completion">Completes words.</param>
internal sealed class LineEditor(ITerminal terminal, History history, IWordCompletion completion)
{
    private readonly EditedLine _line = new();
    private HistoryWalk _walk = new(history);
    private string _prompt = "";

    /// <summary>Reads a line.</summary>
    /// <param name="prompt">What stands before it; without characters that act on a terminal.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <returns>The line; empty when it was given up; null: there will be none (Ctrl+D).</returns>
    public async Task<string?> ReadAsync(string prompt, CancellationToken ct)
    {
        _prompt = prompt;
        _line.Set("");
        _walk = new HistoryWalk(history);
        while (true)
        {
            Draw();
            TerminalKey? key = await terminal.ReadKeyAsync(ct).ConfigureAwait(false);
            if (key?.Kind == TerminalKeyKind.Search)
            {
                key = await SearchAsync(ct).ConfigureAwait(false);
            }

            switch (key?.Kind)
            {
                case null:
                    terminal.Write("\r\n");
                    return null;
                case TerminalKeyKind.EndOfInput when _line.Text.Length == 0:
                    terminal.Write("\r\n");
                    return null;
                case TerminalKeyKind.EndOfInput:
                    _line.Delete();
                    break;
                case TerminalKeyKind.Interrupt:
                    _line.End();
                    Draw();
                    terminal.Write("^C\r\n");
                    return "";
                case TerminalKeyKind.Enter:
                    _line.End();
                    Draw();
                    terminal.Write("\r\n");
                    return _line.Text;
                case TerminalKeyKind.Tab:
                    await CompleteAsync(ct).ConfigureAwait(false);
                    break;
                default:
                    Edit(key);
                    break;
            }
        }
    }

    private void Edit(TerminalKey key)
    {
        Action? edit = key.Kind switch
        {
            TerminalKeyKind.Text => () => _line.Insert(key.Text),
            TerminalKeyKind.Backspace => _line.Backspace,
            TerminalKeyKind.Delete => _line.Delete,
            TerminalKeyKind.Left => _line.Left,
            TerminalKeyKind.Right => _line.Right,
            TerminalKeyKind.WordLeft => _line.WordLeft,
            TerminalKeyKind.WordRight => _line.WordRight,
            TerminalKeyKind.Home => _line.Home,
            TerminalKeyKind.End => _line.End,
            TerminalKeyKind.DeleteToEnd => _line.DeleteToEnd,
            TerminalKeyKind.DeleteToStart => _line.DeleteToStart,
            TerminalKeyKind.DeleteWord => _line.DeleteWord,
            TerminalKeyKind.Up => () => _line.Set(_walk.Older(_line.Text)),
            TerminalKeyKind.Down => () => _line.Set(_walk.Newer(_line.Text)),
            TerminalKeyKind.ClearScreen => () => terminal.Write("\x1b[H\x1b[2J"),
            _ => null,
        };
        edit?.Invoke();
    }

    /// <summary>Puts in what all possible words have in common; lists them when that is nothing more.</summary>
    private async Task CompleteAsync(CancellationToken ct)
    {
        WordChoice choice = await completion.CompleteAsync(_line.Text[.._line.Cursor], ct).ConfigureAwait(false);
        if (choice.Words.Count == 0)
        {
            return;
        }

        string before = _line.Text;
        _line.ReplaceBack(choice.Start, choice.Common);
        if (choice.Words.Count > 1 && _line.Text == before)
        {
            terminal.Write("\r\n" + Columns(choice.Words));
        }
    }

    /// <summary>Words side by side, as many in a row as fit.</summary>
    private string Columns(IReadOnlyList<string> words)
    {
        string[] shown = [.. words.Select(ShownText.Of)];
        int width = shown.Max(CellWidth.Of) + 2;
        int perRow = Math.Max(1, (terminal.Width - 1) / width);
        StringBuilder rows = new();
        foreach (string[] row in shown.Chunk(perRow))
        {
            IEnumerable<string> cells = row.Select(word => word + new string(' ', width - CellWidth.Of(word)));
            rows.Append(string.Concat(cells).TrimEnd()).Append("\r\n");
        }

        return rows.ToString();
    }

    /// <summary>
    /// Ctrl+R: the newest line that has what is typed; Ctrl+R again: an older one. Escape brings the old line back.
    /// </summary>
    /// <returns>The key that ended the search and acts on the line found.</returns>
    private async Task<TerminalKey?> SearchAsync(CancellationToken ct)
    {
        string old = _line.Text;
        string wanted = "";
        int skip = 0;
        while (true)
        {
            string found = history.Find(wanted, skip) ?? (wanted.Length == 0 ? old : _line.Text);
            _line.Set(found);
            Draw($"(search '{wanted}'): ");
            TerminalKey? key = await terminal.ReadKeyAsync(ct).ConfigureAwait(false);
            switch (key?.Kind)
            {
                case TerminalKeyKind.Text:
                    (wanted, skip) = (wanted + key.Text.ReplaceLineEndings(" "), 0);
                    break;
                case TerminalKeyKind.Backspace:
                    (wanted, skip) = (wanted.Length == 0 ? "" : wanted[..^1], 0);
                    break;
                case TerminalKeyKind.Search:
                    skip += history.Find(wanted, skip + 1) is null ? 0 : 1;
                    break;
                case TerminalKeyKind.Escape:
                    _line.Set(old);
                    return key;
                default:
                    return key;
            }
        }
    }

    private void Draw(string? prompt = null)
    {
        string before = ShownText.Sentence(prompt ?? _prompt);
        int room = Math.Max(8, terminal.Width - 1 - CellWidth.Of(before));
        (string shown, int column) = Part(room);
        int cursor = CellWidth.Of(before) + column;
        string move = cursor == 0 ? "" : string.Create(CultureInfo.InvariantCulture, $"\x1b[{cursor}C");
        terminal.Write($"\r{before}{shown}\x1b[K\r{move}");
    }

    /// <summary>The part of the line around the cursor that fits, and the cursor's column in it.</summary>
    private (string Shown, int Column) Part(int room)
    {
        // As much before the cursor as fits, but the last quarter is left for what comes behind it.
        int begin = _line.Cursor;
        int column = 0;
        string left = _line.Text[Math.Max(0, _line.Cursor - (4 * room))..begin];
        List<string> elements = ElementsOf(left);
        StringBuilder shown = new();
        int first = elements.Count;
        int roomBefore = _line.Cursor == _line.Text.Length ? room : room * 3 / 4;
        while (first > 0 && column + CellWidth.Of(elements[first - 1]) <= roomBefore)
        {
            column += CellWidth.Of(elements[--first]);
        }

        shown.AppendJoin("", elements[first..]);
        int width = column;
        foreach (string element in ElementsOf(_line.Text[begin..Math.Min(_line.Text.Length, begin + (4 * room))]))
        {
            width += CellWidth.Of(element);
            if (width > room)
            {
                break;
            }

            shown.Append(element);
        }

        return (shown.ToString(), column);
    }

    private static List<string> ElementsOf(string text)
    {
        List<string> elements = [];
        TextElementEnumerator enumerator = StringInfo.GetTextElementEnumerator(text);
        while (enumerator.MoveNext())
        {
            elements.Add(CellWidth.Shown(enumerator.GetTextElement()));
        }

        return elements;
    }
}
