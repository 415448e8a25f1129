using System.Collections;
using System.Globalization;
using System.Runtime.CompilerServices;
using System.Text;

namespace Kahuna.Server.Primitives;

/// <summary>
/// A line for the operator with structured fields. An interpolated string becomes the text and, named after its
/// expressions, the fields of a log event (<c>{group.Title}</c> becomes the field <c>GroupTitle</c>). A plain string
/// does not convert, because its fields would be lost. Invariant culture. Immutable once passed on; any thread.
/// </summary>
[InterpolatedStringHandler]
internal sealed class ReportLine : IReadOnlyList<KeyValuePair<string, object?>>
{
    /// <summary>Name of the field with the message template.</summary>
    private const string TemplateField = "{OriginalFormat}";

    private readonly StringBuilder _text;
    private readonly StringBuilder _template;
    private readonly List<KeyValuePair<string, object?>> _fields;

    /// <param name="literalLength">Characters of fixed text; by the compiler.</param>
    /// <param name="formattedCount">Number of fields; by the compiler.</param>
    public ReportLine(int literalLength, int formattedCount)
    {
        _text = new StringBuilder(literalLength + (16 * formattedCount));
        _template = new StringBuilder(literalLength + (16 * formattedCount));
        _fields = new List<KeyValuePair<string, object?>>(formattedCount);
    }

    /// <summary>Fields and, last, the template.</summary>
    public int Count => _fields.Count + 1;

    public KeyValuePair<string, object?> this[int index] =>
        index < _fields.Count ? _fields[index] : new(TemplateField, _template.ToString());

    public void AppendLiteral(string text)
    {
        _text.Append(text);
        _template.Append(
            text.Replace("{", "{{", StringComparison.Ordinal).Replace("}", "}}", StringComparison.Ordinal));
    }

    public void AppendFormatted<T>(T value, [CallerArgumentExpression(nameof(value))] string expression = "") =>
        AppendFormatted(value, null, expression);

    public void AppendFormatted<T>(
        T value, string? format, [CallerArgumentExpression(nameof(value))] string expression = "")
    {
        string name = NameOf(expression);
        _text.Append(
            value is IFormattable formattable
                ? formattable.ToString(format, CultureInfo.InvariantCulture)
                : value?.ToString());
        _template.Append('{').Append(name).Append('}');
        _fields.Add(new(
            name,
            value is null or string or bool or int or long or uint or ulong or double ? value : value.ToString()));
    }

    public override string ToString() => _text.ToString();

    public IEnumerator<KeyValuePair<string, object?>> GetEnumerator()
    {
        for (int i = 0; i < Count; i++)
        {
            yield return this[i];
        }
    }

    IEnumerator IEnumerable.GetEnumerator() => GetEnumerator();

    /// <summary>
    /// Field name of an expression: the capitalized words of a member path, otherwise <c>Value</c> and its number.
    /// </summary>
    private string NameOf(string expression)
    {
        if (!expression.All(character => char.IsAsciiLetterOrDigit(character) || character is '.' or '_'))
        {
            return "Value" + (_fields.Count + 1).ToString(CultureInfo.InvariantCulture);
        }

        IEnumerable<string> words = expression.Split('.', '_').Where(word => word.Length > 0);
        string name = string.Concat(words.Select(word => char.ToUpperInvariant(word[0]) + word[1..]));
        return _fields.Exists(field => field.Key == name)
            ? name + (_fields.Count + 1).ToString(CultureInfo.InvariantCulture)
            : name;
    }
}
