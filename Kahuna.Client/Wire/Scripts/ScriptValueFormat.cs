using System.Buffers.Binary;
using System.Diagnostics.CodeAnalysis;
using System.Text;
using System.Text.Unicode;
using Kahuna.Wire.Buffers;

namespace Kahuna.Wire.Scripts;

/// <summary>
/// The encoding of a value: one byte for its kind, then its content, little-endian. Texts, bytes and arrays begin with
/// a 32-bit length. An entry is its key, revision, remaining time, and its value, encoded. Stateless, any thread.
/// </summary>
internal static class ScriptValueFormat
{
    /// <summary>Longest encoding that is read: twice of what the budget lets a script make.</summary>
    public const int BytesMax = 32 << 20;

    /// <summary>Appends the encoding.</summary>
    public static void Write(ScriptValue value, ByteBuffer target)
    {
        target.Take(1)[0] = (byte)value.Kind;
        switch (value.Kind)
        {
            case ScriptValueKind.Bool:
                target.Take(1)[0] = value.AsBool ? (byte)1 : (byte)0;
                break;
            case ScriptValueKind.Integer:
                BinaryPrimitives.WriteInt64LittleEndian(target.Take(sizeof(long)), value.AsInteger);
                break;
            case ScriptValueKind.Double:
                BinaryPrimitives.WriteDoubleLittleEndian(target.Take(sizeof(double)), value.AsDouble);
                break;
            case ScriptValueKind.String or ScriptValueKind.Bytes:
                WriteBlock(target, value.AsBytes.Span);
                break;
            case ScriptValueKind.Array:
                BinaryPrimitives.WriteInt32LittleEndian(target.Take(sizeof(int)), value.Items.Count);
                foreach (ScriptValue item in value.Items)
                {
                    Write(item, target);
                }

                break;
            case ScriptValueKind.Entry:
                WriteBlock(target, Encoding.UTF8.GetBytes(value.Key));
                BinaryPrimitives.WriteInt64LittleEndian(target.Take(sizeof(long)), value.Revision);
                BinaryPrimitives.WriteInt64LittleEndian(target.Take(sizeof(long)), value.ExpiresInMs);
                Write(value.Value, target);
                break;
            default:
                break;
        }
    }

    /// <inheritdoc cref="ScriptValue.TryRead"/>
    public static bool TryRead(ref ReadOnlySpan<byte> source, out ScriptValue value)
    {
        int before = source.Length;
        if (TryRead(ref source, ScriptValue.NestingMax, out ScriptValue? read) && before - source.Length <= BytesMax)
        {
            value = read;
            return true;
        }

        value = ScriptValue.Null;
        return false;
    }

    private static void WriteBlock(ByteBuffer target, ReadOnlySpan<byte> bytes)
    {
        BinaryPrimitives.WriteInt32LittleEndian(target.Take(sizeof(int)), bytes.Length);
        target.Append(bytes);
    }

    private static bool TryRead(
        ref ReadOnlySpan<byte> source, int nesting, [NotNullWhen(true)] out ScriptValue? value)
    {
        value = null;
        if (source.IsEmpty)
        {
            return false;
        }

        ScriptValueKind kind = (ScriptValueKind)source[0];
        source = source[1..];
        switch (kind)
        {
            case ScriptValueKind.Null:
                value = ScriptValue.Null;
                break;
            case ScriptValueKind.Bool when source is [0 or 1, ..]:
                value = ScriptValue.Of(source[0] == 1);
                source = source[1..];
                break;
            case ScriptValueKind.Integer when TryReadNumber(ref source, out long number):
                value = ScriptValue.Of(number);
                break;
            case ScriptValueKind.Double when TryReadNumber(ref source, out long bits):
                double read = BitConverter.Int64BitsToDouble(bits);
                value = double.IsFinite(read) ? ScriptValue.Of(read) : null;
                break;
            case ScriptValueKind.String when TryReadText(ref source, out byte[]? text):
                value = ScriptValue.OfText(text);
                break;
            case ScriptValueKind.Bytes when TryReadBlock(ref source, out ReadOnlySpan<byte> block):
                value = ScriptValue.Of(block.ToArray());
                break;
            case ScriptValueKind.Array when nesting > 0:
                value = ReadArray(ref source, nesting - 1);
                break;
            case ScriptValueKind.Entry:
                value = ReadEntry(ref source);
                break;
            default:
                break;
        }

        return value is not null;
    }

    private static ScriptValue? ReadArray(ref ReadOnlySpan<byte> source, int nesting)
    {
        // An item has at least one byte, so a wrong count is seen before it is believed.
        if (!BinaryPrimitives.TryReadInt32LittleEndian(source, out int count)
            || (uint)count > (uint)(source.Length - sizeof(int)))
        {
            return null;
        }

        source = source[sizeof(int)..];
        ScriptValue[] items = new ScriptValue[count];
        for (int i = 0; i < count; i++)
        {
            if (!TryRead(ref source, nesting, out ScriptValue? item))
            {
                return null;
            }

            items[i] = item;
        }

        return ScriptValue.Of(items);
    }

    private static ScriptValue? ReadEntry(ref ReadOnlySpan<byte> source)
    {
        if (!TryReadText(ref source, out byte[]? key)
            || !TryReadNumber(ref source, out long revision)
            || !TryReadNumber(ref source, out long expiresInMs)
            || source is not [(byte)ScriptValueKind.Null or (byte)ScriptValueKind.String or (byte)ScriptValueKind.Bytes,
                ..]
            || !TryRead(ref source, nesting: 0, out ScriptValue? value))
        {
            return null;
        }

        return ScriptValue.OfEntry(
            Encoding.UTF8.GetString(key),
            value.Kind == ScriptValueKind.Null ? (ReadOnlyMemory<byte>?)null : value.AsBytes,
            revision,
            expiresInMs);
    }

    private static bool TryReadNumber(ref ReadOnlySpan<byte> source, out long number)
    {
        if (!BinaryPrimitives.TryReadInt64LittleEndian(source, out number))
        {
            return false;
        }

        source = source[sizeof(long)..];
        return true;
    }

    private static bool TryReadText(ref ReadOnlySpan<byte> source, [NotNullWhen(true)] out byte[]? text)
    {
        text = TryReadBlock(ref source, out ReadOnlySpan<byte> block) && Utf8.IsValid(block) ? block.ToArray() : null;
        return text is not null;
    }

    private static bool TryReadBlock(ref ReadOnlySpan<byte> source, out ReadOnlySpan<byte> block)
    {
        block = default;
        if (!BinaryPrimitives.TryReadInt32LittleEndian(source, out int length)
            || (uint)length > (uint)(source.Length - sizeof(int)))
        {
            return false;
        }

        block = source.Slice(sizeof(int), length);
        source = source[(sizeof(int) + length)..];
        return true;
    }
}
