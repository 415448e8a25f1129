using System.Text.Json;

namespace Kahuna.Tests.Linearizability;

/// <summary>
/// One object of a history line, read field by field; a null counts as left out. What has another type, or is not read
/// by anybody, is an error that names the field. Owned by the reader.
/// </summary>
internal sealed class HistoryObject
{
    private readonly string _name;
    private readonly int _line;
    private readonly Dictionary<string, JsonElement> _fields = new(StringComparer.Ordinal);
    private readonly HashSet<string> _read = new(StringComparer.Ordinal);

    /// <param name="element">The object.</param>
    /// <param name="name">Its field, empty for the line itself.</param>
    /// <param name="line">Where, for errors.</param>
    public HistoryObject(JsonElement element, string name, int line)
    {
        _name = name;
        _line = line;
        if (element.ValueKind != JsonValueKind.Object)
        {
            throw new HistoryException(line, name.Length == 0 ? "is no JSON object" : $"{name} must be an object");
        }

        foreach (JsonProperty field in element.EnumerateObject())
        {
            if (!_fields.TryAdd(field.Name, field.Value))
            {
                throw new HistoryException(line, $"{PathOf(field.Name)} is there twice");
            }
        }
    }

    private HistoryObject(string name, int line)
    {
        IsLeftOut = true;
        _name = name;
        _line = line;
    }

    /// <summary>There is no such object: its field was left out.</summary>
    public bool IsLeftOut { get; }

    /// <summary>The object in a field; an empty one when it is left out.</summary>
    public HistoryObject Object(string name)
    {
        return Find(name) is { } found
            ? new HistoryObject(found, PathOf(name), _line)
            : new HistoryObject(PathOf(name), _line);
    }

    /// <summary>The items of a list; none when it is left out.</summary>
    public IEnumerable<JsonElement> Items(string name)
    {
        if (Find(name) is not { } found)
        {
            return [];
        }

        return found.ValueKind == JsonValueKind.Array ? found.EnumerateArray() : throw Wrong(name, "a list");
    }

    public long? Integer(string name)
    {
        if (Find(name) is not { } found)
        {
            return null;
        }

        return found.ValueKind == JsonValueKind.Number && found.TryGetInt64(out long number)
            ? number
            : throw Wrong(name, "a whole number of 64 bits");
    }

    public bool? Flag(string name) => Find(name)?.ValueKind switch
    {
        null => null,
        JsonValueKind.True => true,
        JsonValueKind.False => false,
        _ => throw Wrong(name, "true or false"),
    };

    public string? Text(string name)
    {
        if (Find(name) is not { } found)
        {
            return null;
        }

        return found.ValueKind == JsonValueKind.String ? found.GetString() : throw Wrong(name, "a string");
    }

    /// <summary>True when the field is there, be it null.</summary>
    public bool Has(string name) => _fields.ContainsKey(name);

    /// <summary>The field must be there, and not null.</summary>
    public TField Require<TField>(string name, TField? field)
        where TField : struct =>
        field ?? throw Missing(name);

    public string Require(string name, string? field) => field ?? throw Missing(name);

    public HistoryException Missing(string name) => new(_line, $"{PathOf(name)} is missing");

    /// <summary>A field holds a word that is none of those it may hold.</summary>
    public HistoryException Unknown(string name, string word, string words) =>
        new(_line, $"{PathOf(name)} is {word}; it must be one of {words}");

    /// <summary>
    /// Called when everything was read that the operation knows. A field that says nothing, null or false, may be there
    /// all the same.
    /// </summary>
    public void RequireNothingElse()
    {
        foreach ((string name, JsonElement value) in _fields)
        {
            if (!_read.Contains(name) && value.ValueKind is not (JsonValueKind.Null or JsonValueKind.False))
            {
                throw new HistoryException(_line, $"{PathOf(name)} is no field of this operation");
            }
        }
    }

    private JsonElement? Find(string name)
    {
        _read.Add(name);
        return _fields.TryGetValue(name, out JsonElement found) && found.ValueKind != JsonValueKind.Null ? found : null;
    }

    private HistoryException Wrong(string name, string expected) => new(_line, $"{PathOf(name)} must be {expected}");

    private string PathOf(string name) => _name.Length == 0 ? name : $"{_name}.{name}";
}
