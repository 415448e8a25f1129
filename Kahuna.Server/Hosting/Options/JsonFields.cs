using System.Globalization;
using System.Text.Json;

namespace Kahuna.Server.Hosting.Options;

/// <summary>
/// Reads fields of the small JSON files of a data directory, with errors that name the field. Stateless.
/// </summary>
internal static class JsonFields
{
    /// <summary>Reads a required field.</summary>
    /// <exception cref="JsonException">It is missing, or not what <paramref name="read"/> expects.</exception>
    public static T Need<T>(JsonElement element, string name, Func<JsonElement, T> read)
    {
        if (element.ValueKind != JsonValueKind.Object || !element.TryGetProperty(name, out JsonElement field))
        {
            throw new JsonException($"'{name}' is missing.");
        }

        try
        {
            return read(field);
        }
        catch (Exception error) when (error is InvalidOperationException or FormatException or OverflowException)
        {
            throw new JsonException($"'{name}' is of another type or out of range.", error);
        }
    }

    /// <summary>Reads a text.</summary>
    public static string Text(JsonElement field) => field.GetString() ?? throw new FormatException();

    /// <summary>Reads 64 bits from 16 hexadecimal digits; never 0.</summary>
    public static ulong Id(JsonElement field) =>
        ulong.Parse(Text(field), NumberStyles.AllowHexSpecifier, CultureInfo.InvariantCulture) is var id and not 0
            ? id
            : throw new FormatException();
}
