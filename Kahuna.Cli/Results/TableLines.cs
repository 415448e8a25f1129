using System.Text;

namespace Kahuna.Cli.Results;

/// <summary>
/// Lays records out in columns. The first <see cref="Measured"/> rows decide the widths, so that a list of any length
/// needs memory for these alone. Used by one output.
/// </summary>
/// <param name="columns">Names of the fields; the heading comes also when there are no rows.</param>
/// <param name="write">Takes a line, and whether it is the heading.</param>
/// <param name="widthMin">The least width of a column, for a table whose rows are not known yet.</param>
internal sealed class TableLines(IReadOnlyList<string> columns, Action<string, bool> write, int widthMin = 0)
{
    public const int Measured = 200;

    private readonly List<string[]> _waiting = [];
    private int[]? _widths;

    /// <summary>Takes a row; it may be written later.</summary>
    public void Add(Record record)
    {
        string[] row = [.. record.Select(static field => RecordText.Of(field.Value))];
        if (_widths is not null)
        {
            Write(row, _widths, isHeading: false);
            return;
        }

        _waiting.Add(row);
        if (_waiting.Count == Measured)
        {
            Flush();
        }
    }

    /// <summary>Writes what waits. The widths are decided from then on.</summary>
    public void Flush()
    {
        if (_widths is not null)
        {
            return;
        }

        string[] headings = [.. columns.Select(RecordText.Heading)];
        _widths =
        [
            .. headings.Select((heading, i) =>
                _waiting.Select(row => row[i].Length).Append(heading.Length).Append(widthMin).Max()),
        ];
        Write(headings, _widths, isHeading: true);
        foreach (string[] row in _waiting)
        {
            Write(row, _widths, isHeading: false);
        }

        _waiting.Clear();
    }

    private void Write(string[] cells, int[] widths, bool isHeading)
    {
        StringBuilder line = new();
        for (int i = 0; i < cells.Length - 1; i++)
        {
            line.Append(cells[i].PadRight(widths[i])).Append("  ");
        }

        write(line.Append(cells[^1]).ToString(), isHeading);
    }
}
