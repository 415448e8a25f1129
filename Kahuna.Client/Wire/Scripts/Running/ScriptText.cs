using System.Buffers;
using System.Globalization;
using System.Text;

namespace Kahuna.Wire.Scripts.Running;

/// <summary>Values as text. Stateless, any thread.</summary>
internal static class ScriptText
{
    /// <summary>What errors call a type.</summary>
    public static string NameOf(ScriptValue value) => value.Plain.Kind switch
    {
        ScriptValueKind.Null => "null",
        ScriptValueKind.Bool => "a boolean",
        ScriptValueKind.Integer => "an integer",
        ScriptValueKind.Double => "a double",
        ScriptValueKind.String => "a string",
        ScriptValueKind.Bytes => "bytes",
        _ => "an array",
    };

    /// <summary>The text of a string, integer, double or boolean; null for other types.</summary>
    public static ReadOnlyMemory<byte>? Of(ScriptValue value) => value.Kind switch
    {
        ScriptValueKind.String => value.AsBytes,
        ScriptValueKind.Integer => Ascii(value.AsInteger.ToString(CultureInfo.InvariantCulture)),
        ScriptValueKind.Double => Ascii(DoubleText.Of(value.AsDouble)),
        ScriptValueKind.Bool => value.AsBool ? "true"u8.ToArray() : "false"u8.ToArray(),

        // A bare null would become empty memory, by way of an array.
        _ => (ReadOnlyMemory<byte>?)null,
    };

    /// <summary>JSON (RFC 8259): bytes as Base64 strings, entries as their value, nothing between the tokens.</summary>
    /// <exception cref="ScriptFailure">The text would be longer than the budget allows.</exception>
    public static ReadOnlyMemory<byte> Json(ScriptValue value, ScriptMeter meter)
    {
        ArrayBufferWriter<byte> target = new();
        WriteJson(value, target, meter);
        return target.WrittenMemory;
    }

    private static void WriteJson(ScriptValue value, ArrayBufferWriter<byte> target, ScriptMeter meter)
    {
        ScriptValue plain = value.Plain;
        switch (plain.Kind)
        {
            case ScriptValueKind.Null:
                target.Write("null"u8);
                break;
            case ScriptValueKind.String:
                WriteString(plain.AsBytes.Span, target);
                break;
            case ScriptValueKind.Bytes:
                target.Write("\""u8);
                target.Write(Ascii(Convert.ToBase64String(plain.AsBytes.Span)));
                target.Write("\""u8);
                break;
            case ScriptValueKind.Array:
                for (int i = 0; i < plain.Items.Count; i++)
                {
                    target.Write(i == 0 ? "["u8 : ","u8);
                    WriteJson(plain.Items[i], target, meter);
                }

                target.Write(plain.Items.Count == 0 ? "[]"u8 : "]"u8);
                break;
            default:
                target.Write(Of(plain)!.Value.Span);
                break;
        }

        if (target.WrittenCount > meter.BytesLeft)
        {
            meter.Bytes(target.WrittenCount);
        }
    }

    private static void WriteString(ReadOnlySpan<byte> text, ArrayBufferWriter<byte> target)
    {
        target.Write("\""u8);
        while (!text.IsEmpty)
        {
            int plain = 0;
            while (plain < text.Length && text[plain] is >= 0x20 and not (byte)'"' and not (byte)'\\')
            {
                plain++;
            }

            target.Write(text[..plain]);
            if (plain == text.Length)
            {
                break;
            }

            target.Write(EscapeOf(text[plain]));
            text = text[(plain + 1)..];
        }

        target.Write("\""u8);
    }

    private static byte[] EscapeOf(byte character) => character switch
    {
        (byte)'"' => [(byte)'\\', (byte)'"'],
        (byte)'\\' => [(byte)'\\', (byte)'\\'],
        (byte)'\n' => [(byte)'\\', (byte)'n'],
        (byte)'\r' => [(byte)'\\', (byte)'r'],
        (byte)'\t' => [(byte)'\\', (byte)'t'],
        (byte)'\b' => [(byte)'\\', (byte)'b'],
        (byte)'\f' => [(byte)'\\', (byte)'f'],
        _ => Ascii("\\u00" + Convert.ToHexString([character])),
    };

    private static byte[] Ascii(string text) => Encoding.ASCII.GetBytes(text);
}
