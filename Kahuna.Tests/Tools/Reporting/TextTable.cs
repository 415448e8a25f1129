namespace Kahuna.Tests.Tools.Reporting;

/// <summary>A table of text with a title and a line under its headings. Stateless.</summary>
internal static class TextTable
{
    public static void Write(TextWriter output, string title, TextColumn[] columns, IEnumerable<object?[]> rows)
    {
        string head = string.Join("  ", columns.Select(static column => column.Pad(column.Heading)));
        output.WriteLine();
        output.WriteLine(title);
        output.WriteLine(head);
        output.WriteLine(new string('-', head.Length));
        foreach (object?[] row in rows)
        {
            output.WriteLine(
                string.Join("  ", row.Zip(columns, static (value, column) => column.Show(value))).TrimEnd());
        }
    }
}
