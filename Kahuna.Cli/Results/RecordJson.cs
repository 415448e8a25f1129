using System.Buffers;
using System.Globalization;
using System.Text.Encodings.Web;
using System.Text.Json;
using System.Text.Unicode;

namespace Kahuna.Cli.Results;

/// <summary>
/// Writes records as JSON. A value of a key is <c>value</c> when it is UTF-8 text or null, and otherwise
/// <c>valueBase64</c>. Spans are milliseconds, with <c>Ms</c> behind the name. Static, any thread.
/// </summary>
internal static class RecordJson
{
    private static readonly JavaScriptEncoder s_encoder = CreateEncoder();

    /// <summary>One object.</summary>
    /// <param name="record">The object.</param>
    /// <param name="isIndented">Over several lines.</param>
    public static ReadOnlyMemory<byte> Of(Record record, bool isIndented)
    {
        ArrayBufferWriter<byte> buffer = new();
        using (Utf8JsonWriter json = new(buffer, new JsonWriterOptions { Encoder = s_encoder, Indented = isIndented }))
        {
            Write(json, record);
        }

        return buffer.WrittenMemory;
    }

    /// <summary>
    /// Text of all languages stays as it is. Control characters are always escaped. Here, so are characters
    /// that turn the direction of a line or are not seen.
    /// </summary>
    private static JavaScriptEncoder CreateEncoder()
    {
        TextEncoderSettings settings = new(UnicodeRanges.All);
        settings.ForbidCharacters(
        [
            .. Enumerable.Range(0, char.MaxValue).Select(static code => (char)code)
                .Where(static letter => char.GetUnicodeCategory(letter) == UnicodeCategory.Format),
        ]);
        return JavaScriptEncoder.Create(settings);
    }

    private static void Write(Utf8JsonWriter json, Record record)
    {
        json.WriteStartObject();
        foreach ((string name, object? value) in record)
        {
            switch (value)
            {
                case KahunaValue { IsNull: false } bytes when !Utf8.IsValid(bytes.Memory.Span):
                    json.WriteBase64String(name + "Base64", bytes.Memory.Span);
                    break;
                case TimeSpan span:
                    json.WriteNumber(name + "Ms", (long)span.TotalMilliseconds);
                    break;
                default:
                    json.WritePropertyName(name);
                    WriteValue(json, value);
                    break;
            }
        }

        json.WriteEndObject();
    }

    private static void WriteValue(Utf8JsonWriter json, object? value)
    {
        switch (value)
        {
            case null or KahunaValue { IsNull: true }:
                json.WriteNullValue();
                break;
            case KahunaValue text when Utf8.IsValid(text.Memory.Span):
                json.WriteStringValue(text.Memory.Span);
                break;
            case KahunaValue binary:
                json.WriteStartObject();
                json.WriteBase64String("base64", binary.Memory.Span);
                json.WriteEndObject();
                break;
            case bool truth:
                json.WriteBooleanValue(truth);
                break;
            case int or long:
                json.WriteNumberValue(Convert.ToInt64(value, CultureInfo.InvariantCulture));
                break;
            case Bytes bytes:
                json.WriteNumberValue(bytes.Count);
                break;
            case double number:
                json.WriteNumberValue(number);
                break;
            case DateTimeOffset time:
                json.WriteStringValue(time.UtcDateTime);
                break;
            case Record record:
                Write(json, record);
                break;
            case IEnumerable<object?> list:
                json.WriteStartArray();
                foreach (object? item in list)
                {
                    WriteValue(json, item);
                }

                json.WriteEndArray();
                break;
            default:
                json.WriteStringValue(Convert.ToString(value, CultureInfo.InvariantCulture));
                break;
        }
    }
}
