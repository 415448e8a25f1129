using System.Globalization;
using System.Text.Json;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Terminal;

namespace Kahuna.Cli.Commands.Transactions;

/// <summary>
/// An object of a transaction in JSON, with its place there, such as <c>then[2]</c>. Each read checks the type of a
/// field. Immutable; used by the one that reads the transaction.
/// </summary>
internal sealed class JsonItem
{
    private const int ShownName = 64;

    private readonly string _path;
    private readonly Dictionary<string, JsonElement> _fields = [];

    /// <summary>Takes the fields of an object.</summary>
    /// <param name="element">The object.</param>
    /// <param name="path">Its place; empty: it is the document.</param>
    /// <exception cref="CliException">It is no object, or has a field twice.</exception>
    public JsonItem(JsonElement element, string path)
    {
        _path = path;
        if (element.ValueKind != JsonValueKind.Object)
        {
            throw new CliException($"{path}: this is no JSON object.");
        }

        foreach (JsonProperty field in element.EnumerateObject())
        {
            string name = Unicode(path, () => field.Name);
            if (!_fields.TryAdd(name, field.Value))
            {
                throw Wrong(name, "this field is given twice");
            }
        }
    }

    public bool Has(string name) => _fields.ContainsKey(name);

    /// <summary>Refuses all fields but some.</summary>
    /// <exception cref="CliException">There is another one.</exception>
    public void AllowOnly(params ReadOnlySpan<string> names)
    {
        foreach (string name in _fields.Keys)
        {
            if (!names.Contains(name))
            {
                throw Wrong(name, $"this field is not known here; known are {string.Join(", ", names)}");
            }
        }
    }

    /// <summary>The one of some names that is a field of the object; null: none or several are.</summary>
    public string? OneOf(params ReadOnlySpan<string> names)
    {
        string? found = null;
        foreach (string name in names)
        {
            if (Has(name))
            {
                if (found is not null)
                {
                    return null;
                }

                found = name;
            }
        }

        return found;
    }

    public string Text(string name) => Field(name) is { ValueKind: JsonValueKind.String } text
        ? Unicode(PathOf(name), () => text.GetString()!)
        : throw Wrong(name, "this is no text");

    public bool Flag(string name) => Field(name).ValueKind switch
    {
        JsonValueKind.True => true,
        JsonValueKind.False => false,
        _ => throw Wrong(name, "this is neither true nor false"),
    };

    /// <summary>A whole number of at least <paramref name="min"/>.</summary>
    public long Number(string name, long min = long.MinValue) =>
        Field(name) is { ValueKind: JsonValueKind.Number } number
            && number.TryGetInt64(out long value) && value >= min
            ? value
            : throw Wrong(name, min == long.MinValue
                ? "this is no whole number"
                : string.Create(CultureInfo.InvariantCulture, $"this is no whole number of {min} or more"));

    public TimeSpan Time(string name) => SpanText.TryParse(Text(name), out TimeSpan span)
        ? span
        : throw Wrong(name, $"this is not {SpanText.Form}");

    /// <summary>The bytes of a field in base64.</summary>
    public byte[] Bytes(string name)
    {
        _ = Text(name);
        return Field(name).TryGetBytesFromBase64(out byte[]? bytes) ? bytes : throw Wrong(name, "this is no base64");
    }

    /// <summary>The elements of an array; none when there is no such field.</summary>
    /// <param name="name">The field.</param>
    /// <param name="max">Most elements.</param>
    public IEnumerable<JsonItem> Items(string name, int max)
    {
        if (!Has(name))
        {
            return [];
        }

        JsonElement list = Field(name);
        if (list.ValueKind != JsonValueKind.Array)
        {
            throw Wrong(name, "this is no array");
        }

        return list.GetArrayLength() <= max
            ? list.EnumerateArray().Select((element, index) => new JsonItem(
                element, string.Create(CultureInfo.InvariantCulture, $"{PathOf(name)}[{index}]")))
            : throw Wrong(name, string.Create(
                CultureInfo.InvariantCulture, $"this has more than {max:N0} elements; split the transaction"));
    }

    /// <summary>A failure that names the object.</summary>
    public CliException Wrong(string problem) => new($"{_path}: {problem}.");

    private CliException Wrong(string name, string problem) => new($"{PathOf(name)}: {problem}.");

    private JsonElement Field(string name) =>
        _fields.TryGetValue(name, out JsonElement field) ? field : throw Wrong(name, "this field is missing");

    private string PathOf(string name)
    {
        string shown = name.Length <= ShownName ? name : name[..ShownName] + "…";
        return _path.Length == 0 ? shown : $"{_path}.{shown}";
    }

    private static string Unicode(string path, Func<string> read)
    {
        try
        {
            return read();
        }
        catch (InvalidOperationException)
        {
            throw new CliException($"{path}: this is no Unicode text; write bytes in a field valueBase64.");
        }
    }
}
