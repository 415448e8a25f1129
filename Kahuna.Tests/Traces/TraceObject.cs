using System.Globalization;
using System.Text.Json;

namespace Kahuna.Tests.Traces;

/// <summary>
/// The fields of one line; one that is missing or of another type is an error with its name. Owned by the reader.
/// </summary>
internal readonly struct TraceObject(JsonElement line, TracePlace place)
{
    public long Whole(string name) =>
        Find(name) is { ValueKind: JsonValueKind.Number } found && found.TryGetInt64(out long number) && number >= 0
            ? number
            : throw Wrong(name, "a whole number from 0 on");

    public int Number(string name) =>
        Whole(name) is var number and <= int.MaxValue ? (int)number : throw Wrong(name, "a number of 32 bits");

    public ulong Index(string name) => (ulong)Whole(name);

    public string Text(string name) =>
        Find(name) is { ValueKind: JsonValueKind.String } found ? found.GetString()! : throw Wrong(name, "a string");

    public ulong Hex(string name) =>
        Find(name) is { } found && TryHex(found, out ulong value)
            ? value
            : throw Wrong(name, "a string of hexadecimal digits");

    public List<ulong> HexList(string name)
    {
        List<ulong> list = [];
        foreach (JsonElement item in Items(name))
        {
            list.Add(TryHex(item, out ulong value) ? value : throw Wrong(name, "strings of hexadecimal digits"));
        }

        return list;
    }

    /// <summary>Pairs of a term and a hash.</summary>
    public List<TracedEntry> Entries(string name)
    {
        List<TracedEntry> list = [];
        foreach (JsonElement item in Items(name))
        {
            bool isPair = item.ValueKind == JsonValueKind.Array
                && item.GetArrayLength() == 2
                && item[0].ValueKind == JsonValueKind.Number;
            list.Add(
                isPair && item[0].TryGetUInt64(out ulong term) && TryHex(item[1], out ulong hash)
                    ? new TracedEntry(term, hash)
                    : throw Wrong(name, "pairs of a term and a hash"));
        }

        return list.Count > 0 ? list : throw Wrong(name, "one entry at least");
    }

    /// <summary>Pairs of a first index and a term.</summary>
    public List<(ulong First, ulong Term)> Runs(string name)
    {
        List<(ulong, ulong)> list = [];
        foreach (JsonElement item in Items(name))
        {
            bool isPair = item.ValueKind == JsonValueKind.Array
                && item.GetArrayLength() == 2
                && item[0].ValueKind == JsonValueKind.Number
                && item[1].ValueKind == JsonValueKind.Number;
            list.Add(
                isPair && item[0].TryGetUInt64(out ulong first) && item[1].TryGetUInt64(out ulong term)
                    ? (first, term)
                    : throw Wrong(name, "pairs of an index and a term"));
        }

        return list;
    }

    private static bool TryHex(JsonElement element, out ulong value)
    {
        value = 0;
        return element.ValueKind == JsonValueKind.String
            && ulong.TryParse(
                element.GetString(), NumberStyles.AllowHexSpecifier, CultureInfo.InvariantCulture, out value);
    }

    private JsonElement.ArrayEnumerator Items(string name) =>
        Find(name) is { ValueKind: JsonValueKind.Array } found ? found.EnumerateArray() : throw Wrong(name, "a list");

    private JsonElement? Find(string name) => line.TryGetProperty(name, out JsonElement found) ? found : null;

    private TraceException Wrong(string name, string expected) =>
        new(place, Find(name) is null ? $"{name} is missing" : $"{name} must be {expected}");
}
