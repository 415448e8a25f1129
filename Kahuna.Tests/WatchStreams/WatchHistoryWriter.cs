using System.Text;
using System.Text.Encodings.Web;
using System.Text.Json;

namespace Kahuna.Tests.WatchStreams;

/// <summary>Writes watches as lines of a history file (docs/histories.md). Stateless; any thread.</summary>
internal static class WatchHistoryWriter
{
    private static readonly JsonWriterOptions s_options = new()
    {
        Encoder = JavaScriptEncoder.UnsafeRelaxedJsonEscaping,
    };

    /// <summary>Writes one line. The watch ends with its last event.</summary>
    /// <param name="target">Takes the line; is not closed.</param>
    /// <param name="stream">The watch.</param>
    /// <param name="process">Who watches.</param>
    public static void Write(TextWriter target, WatchStream stream, long process)
    {
        using MemoryStream line = new();
        using (Utf8JsonWriter json = new(line, s_options))
        {
            json.WriteStartObject();
            json.WriteNumber("process", process);
            json.WriteString("key", stream.Name);
            json.WriteString("op", "watch");
            json.WriteStartObject("args");
            json.WriteString("scope", WatchHistoryReader.NameOf(stream.Scope));
            json.WriteString("from", stream.From);
            json.WriteEndObject();
            json.WriteNumber("call", stream.CallNs);
            json.WriteNumber("return", stream.Events.Count > 0 ? stream.Events[^1].AtNs : stream.CallNs);
            json.WriteString("outcome", "ok");
            json.WriteStartObject("result");
            json.WriteStartArray("events");
            foreach (StreamEvent told in stream.Events)
            {
                Write(json, told);
            }

            json.WriteEndArray();
            json.WriteEndObject();
            json.WriteEndObject();
        }

        target.Write(Encoding.UTF8.GetString(line.GetBuffer(), 0, (int)line.Length));
        target.Write('\n');
    }

    private static void Write(Utf8JsonWriter json, StreamEvent told)
    {
        json.WriteStartObject();
        json.WriteString("kind", WatchHistoryReader.NameOf(told.Kind));
        if (told.IsChange || told.Kind == StreamEventKind.Current)
        {
            json.WriteString("key", told.Key);
            json.WriteNumber("revision", told.Revision);
        }

        if (told.HasValue)
        {
            json.WriteString("value", told.Value);
        }

        json.WriteNumber("at", told.AtNs);
        if (told.Position is { } position)
        {
            json.WriteString("position", position);
        }

        if (told.AsOfNs is { } asOf)
        {
            json.WriteNumber("asOf", asOf);
        }

        json.WriteEndObject();
    }
}
