namespace Kahuna.Cli.Shell;

/// <summary>
/// The way through the lines before with Up and Down. Lines that were changed on the way stay as they are until a line
/// is entered. Used by one line.
/// </summary>
internal sealed class HistoryWalk
{
    private readonly List<string> _lines;
    private int _at;

    public HistoryWalk(History history)
    {
        _lines = [.. history.Lines, ""];
        _at = _lines.Count - 1;
    }

    /// <summary>The line before; the same at the oldest one.</summary>
    /// <param name="current">What the line is now.</param>
    public string Older(string current) => Go(current, Math.Max(0, _at - 1));

    /// <summary>The line behind; the same at the newest one.</summary>
    /// <inheritdoc cref="Older"/>
    public string Newer(string current) => Go(current, Math.Min(_lines.Count - 1, _at + 1));

    private string Go(string current, int to)
    {
        _lines[_at] = current;
        _at = to;
        return _lines[to];
    }
}
