using System.Text.Json;

namespace Kahuna.Server.Hosting.Options;

/// <summary>
/// Reads the options of a JSON file: one object with the names of <see cref="OptionSetting.Key"/>, in any case, or
/// spelled like <c>node-id</c>. Numbers may be unquoted, lists may be arrays, <c>peers</c> may be an object. Comments
/// and trailing commas are allowed. Stateless.
/// </summary>
internal static class JsonFileSource
{
    private static readonly JsonDocumentOptions s_format = new()
    {
        AllowTrailingCommas = true,
        CommentHandling = JsonCommentHandling.Skip,
        AllowDuplicateProperties = false,
    };

    public static void Read(GivenValue path, Dictionary<OptionSetting, GivenValue> values, List<string> errors)
    {
        try
        {
            using JsonDocument document = JsonDocument.Parse(File.ReadAllBytes(path.Text), s_format);
            if (document.RootElement.ValueKind != JsonValueKind.Object)
            {
                errors.Add(
                    $"{path.Text}: expected one JSON object with options, found {document.RootElement.ValueKind}.");
                return;
            }

            foreach (JsonProperty property in document.RootElement.EnumerateObject())
            {
                ReadProperty(path.Text, property, values, errors);
            }
        }
        catch (JsonException error)
        {
            errors.Add($"{path.Text} is not valid JSON: {OneLine.Of(error.Message)}");
        }
        catch (Exception error) when (error is IOException or UnauthorizedAccessException)
        {
            errors.Add($"{path.Origin}: cannot read {path.Text}: {OneLine.Of(error.Message)}");
        }
    }

    private static void ReadProperty(
        string file, JsonProperty property, Dictionary<OptionSetting, GivenValue> values, List<string> errors)
    {
        string plain = property.Name.Replace("-", string.Empty, StringComparison.Ordinal);
        OptionSetting? setting = OptionSetting.All.FirstOrDefault(
            candidate => string.Equals(candidate.Key, plain, StringComparison.OrdinalIgnoreCase));
        if (setting is null || setting == OptionSetting.Config)
        {
            IEnumerable<string> names = OptionSetting.All.Where(candidate => candidate != OptionSetting.Config)
                .Select(candidate => candidate.Key);
            errors.Add(
                $"{file}: unknown option "
                    + $"\"{OneLine.Of(property.Name)}\"{NearestName.Suggestion(property.Name, names)}");
            return;
        }

        string origin = $"{file}: \"{property.Name}\"";
        string? text = Text(setting, property.Value);
        if (string.IsNullOrWhiteSpace(text))
        {
            errors.Add($"{origin} needs a value like {setting.ValueName}, found {property.Value.ValueKind}.");
        }
        else if (!values.TryAdd(setting, new GivenValue(text.Trim(), origin)))
        {
            errors.Add($"{origin} is given twice under different spellings; give it once.");
        }
    }

    private static string? Text(OptionSetting setting, JsonElement value) => value.ValueKind switch
    {
        JsonValueKind.String => value.GetString(),
        JsonValueKind.Number => value.GetRawText(),
        JsonValueKind.Array when setting == OptionSetting.Listen || setting == OptionSetting.Peers =>
            value.EnumerateArray().All(item => item.ValueKind == JsonValueKind.String)
                ? string.Join(',', value.EnumerateArray().Select(item => item.GetString()))
                : null,
        JsonValueKind.Object when setting == OptionSetting.Peers =>
            value.EnumerateObject().All(item => item.Value.ValueKind == JsonValueKind.String)
                ? string.Join(',', value.EnumerateObject().Select(item => $"{item.Name}={item.Value.GetString()}"))
                : null,
        _ => null,
    };
}
