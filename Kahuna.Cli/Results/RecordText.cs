using System.Globalization;
using System.Text;
using Kahuna.Cli.Terminal;

namespace Kahuna.Cli.Results;

/// <summary>Writes the fields of records for people; everything in one line and escaped. Static, any thread.</summary>
internal static class RecordText
{
    /// <summary>A value in a column is cut here.</summary>
    private const int ValueLengthMax = 120;

    /// <summary>The heading of a column: <c>remainingTtl</c> is <c>REMAINING TTL</c>.</summary>
    public static string Heading(string name)
    {
        StringBuilder heading = new();
        foreach (char letter in name)
        {
            if (char.IsUpper(letter))
            {
                heading.Append(' ');
            }

            heading.Append(char.ToUpperInvariant(letter));
        }

        return heading.ToString();
    }

    /// <summary>The text of a field.</summary>
    public static string Of(object? value) => value switch
    {
        null => "-",
        string text => ShownText.Of(text),
        KahunaValue { IsNull: true } => "(null)",
        KahunaValue bytes => ShownText.Of(bytes.Memory.Span, ValueLengthMax),
        bool truth => truth ? "yes" : "no",
        TimeSpan span => SpanText.Text(span),
        DateTimeOffset time => time.UtcDateTime.ToString("yyyy-MM-dd HH:mm:ss'Z'", CultureInfo.InvariantCulture),
        double number => number.ToString("0.###", CultureInfo.InvariantCulture),
        Record record => string.Join(' ', record.Select(static field => $"{field.Key}={Of(field.Value)}")),
        IEnumerable<object?> list => list.Any() ? string.Join(", ", list.Select(Of)) : "-",
        _ => ShownText.Of(Convert.ToString(value, CultureInfo.InvariantCulture) ?? ""),
    };
}
