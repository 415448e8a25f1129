using System.Buffers;
using System.Globalization;
using System.Text;
using System.Text.Encodings.Web;
using System.Text.Json;

namespace Kahuna.Tests.Linearizability;

/// <summary>
/// Writes operations as lines of a history file (docs/histories.md). Owned by one thread; does not close the target.
/// </summary>
internal sealed class HistoryWriter(TextWriter target)
{
    private static readonly JsonWriterOptions s_options = new()
    {
        Encoder = JavaScriptEncoder.UnsafeRelaxedJsonEscaping,
    };

    private readonly ArrayBufferWriter<byte> _line = new();

    public void Write(HistoryOperation operation)
    {
        _line.ResetWrittenCount();
        using (Utf8JsonWriter json = new(_line, s_options))
        {
            Write(json, operation);
        }

        target.Write(Encoding.UTF8.GetString(_line.WrittenSpan));
        target.Write('\n');
    }

    private static void Write(Utf8JsonWriter json, HistoryOperation operation)
    {
        json.WriteStartObject();
        json.WriteNumber("process", operation.Process);
        json.WriteString("key", operation.Key);
        json.WriteString("op", HistoryFields.NameOf(operation.Kind));
        json.WriteStartObject("args");
        WriteArguments(json, operation.Kind, operation.Arguments);
        json.WriteEndObject();
        json.WriteNumber("call", operation.CallNs);
        WriteGiven(json, "return", operation.ReturnNs, evenNull: true);
        json.WriteString("outcome", HistoryFields.NameOf(operation.Outcome));
        if (operation.Outcome == HistoryOutcome.Ok)
        {
            json.WriteStartObject("result");
            WriteResult(json, operation.Kind, operation.Result);
            json.WriteEndObject();
        }

        json.WriteEndObject();
    }

    private static void WriteArguments(Utf8JsonWriter json, OperationKind kind, OperationArguments arguments)
    {
        if (kind == OperationKind.Set)
        {
            json.WriteString("value", arguments.Value);
        }

        if (kind == OperationKind.Increment)
        {
            json.WriteNumber("by", arguments.By);
        }

        if (kind == OperationKind.Next)
        {
            json.WriteNumber("count", arguments.Count);
        }

        if (kind == OperationKind.Acquire)
        {
            json.WriteString("mode", HistoryFields.NameOf(arguments.Mode));
            WriteGiven(json, "permits", arguments.Mode == LockMode.Permit ? arguments.Permits : null);
        }

        if (arguments.IdempotencyKey is { } key)
        {
            json.WriteString("idempotencyKey", key);
        }

        WriteTrue(json, "fast", arguments.IsFast);
        WriteGiven(json, "ttlMs", arguments.TtlMs);
        WriteTrue(json, "nx", arguments.OnlyIfAbsent);
        WriteTrue(json, "xx", arguments.OnlyIfPresent);
        if (arguments is { OnlyIfValue: true, ComparedValue: { } compared })
        {
            json.WriteString("cmp", compared);
        }

        WriteTrue(json, "cmpNull", arguments is { OnlyIfValue: true, ComparedValue: null });
        WriteGiven(json, "cmpRev", arguments.OnlyIfRevision);
        if (arguments.Fence is { } fence)
        {
            json.WriteStartObject("fence");
            json.WriteString("lock", fence.Lock);
            json.WriteNumber("token", fence.Token);
            json.WriteEndObject();
        }
    }

    private static void WriteResult(Utf8JsonWriter json, OperationKind kind, OperationResult result)
    {
        if (result.Affirmed is { } affirmed)
        {
            json.WriteBoolean(HistoryFields.AffirmedOf(kind), affirmed);
        }

        if (result.HasValue && kind == OperationKind.Increment)
        {
            json.WriteNumber("value", long.Parse(result.Value!, CultureInfo.InvariantCulture));
        }
        else if (result.HasValue)
        {
            json.WriteString("value", result.Value);
        }

        WriteGiven(json, "revision", result.Revision);
        if (result.Position is { } position)
        {
            json.WriteString("position", position);
        }

        WriteGiven(json, "first", result.First);
        WriteGiven(json, "last", result.Last);
        WriteGiven(json, "token", result.Token);
        WriteGiven(json, "until", result.UntilNs);
    }

    private static void WriteTrue(Utf8JsonWriter json, string name, bool given)
    {
        if (given)
        {
            json.WriteBoolean(name, true);
        }
    }

    private static void WriteGiven(Utf8JsonWriter json, string name, long? number, bool evenNull = false)
    {
        if (number is { } given)
        {
            json.WriteNumber(name, given);
        }
        else if (evenNull)
        {
            json.WriteNull(name);
        }
    }
}
