using System.Text;
using System.Text.Json;

namespace Kahuna.Cli.Diagnosis;

/// <summary>
/// A slow operation as a node tells it. What a node of another version does not say, or says in another form, is null.
/// Immutable.
/// </summary>
/// <param name="node">The node that told it.</param>
/// <param name="root">The operation.</param>
internal sealed class SlowOperation(object? node, JsonElement root)
{
    /// <summary>The node's number, or its address when it did not say.</summary>
    public object? Node => node;

    /// <summary>Its number at the node, from 1 at the node's start.</summary>
    public long? Id => Number("id");

    /// <summary>When the operation was received.</summary>
    public DateTimeOffset? At { get; } = TimeOf(root);

    public string? Name => Text("operation");

    /// <summary>The beginning of the key: a text or bytes.</summary>
    public object? Key => Text("key") is not { } key ? null
        : Field("keyIsText") is { ValueKind: JsonValueKind.False } ? BytesOf(key)
        : new KahunaValue(Encoding.UTF8.GetBytes(key));

    public long? Partition => Number("partition");

    public string? Status => Text("status");

    public double? TotalMs => Number("totalUs") / 1000.0;

    /// <summary>Everything that the node said of it.</summary>
    public IEnumerable<JsonProperty> Fields => root.EnumerateObject();

    /// <summary>The operations in an answer, in its order.</summary>
    public static IEnumerable<SlowOperation> In(NodeAnswer answer)
    {
        if (answer.Root is not { ValueKind: JsonValueKind.Object } document
            || !document.TryGetProperty("operations", out JsonElement list)
            || list.ValueKind != JsonValueKind.Array)
        {
            return [];
        }

        object node = document.TryGetProperty("node", out JsonElement id) && id.ValueKind == JsonValueKind.Number
            && id.TryGetInt64(out long number) ? number : answer.Endpoint.Authority;
        return list.EnumerateArray().Where(static item => item.ValueKind == JsonValueKind.Object)
            .Select(item => new SlowOperation(node, item));
    }

    /// <summary>
    /// Milliseconds between an event and the latest of those before it in time. A stage that was over when another one
    /// ended, such as a sync slower than the majority's, took none. Null: there is no such event.
    /// </summary>
    public double? StageMs(string name)
    {
        long? before = null;
        foreach ((string Name, long Us) step in Events())
        {
            if (step.Name == name)
            {
                return before is null ? null : Math.Max(0, step.Us - before.Value) / 1000.0;
            }

            before = Math.Max(before ?? 0, step.Us);
        }

        return null;
    }

    private IEnumerable<(string Name, long Us)> Events()
    {
        if (Field("events") is not { ValueKind: JsonValueKind.Array } events)
        {
            yield break;
        }

        foreach (JsonElement step in events.EnumerateArray())
        {
            if (step.ValueKind == JsonValueKind.Object
                && step.TryGetProperty("name", out JsonElement name) && name.ValueKind == JsonValueKind.String
                && step.TryGetProperty("us", out JsonElement us) && us.ValueKind == JsonValueKind.Number
                && us.TryGetInt64(out long at))
            {
                yield return (name.GetString()!, at);
            }
        }
    }

    private static DateTimeOffset? TimeOf(JsonElement root) =>
        root.TryGetProperty("at", out JsonElement at) && at.ValueKind == JsonValueKind.String
            && at.TryGetDateTimeOffset(out DateTimeOffset time)
            ? time
            : null;

    private static object BytesOf(string base64)
    {
        byte[] bytes = new byte[base64.Length];
        return Convert.TryFromBase64String(base64, bytes, out int length)
            ? new KahunaValue(bytes.AsMemory(0, length))
            : base64;
    }

    private JsonElement? Field(string name) => root.TryGetProperty(name, out JsonElement field) ? field : null;

    private string? Text(string name) =>
        Field(name) is { ValueKind: JsonValueKind.String } text ? text.GetString() : null;

    private long? Number(string name) =>
        Field(name) is { ValueKind: JsonValueKind.Number } number && number.TryGetInt64(out long value) ? value : null;
}
