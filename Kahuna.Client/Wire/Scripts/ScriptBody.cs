using System.Buffers.Binary;
using System.Globalization;
using System.Text;
using System.Text.Unicode;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;

namespace Kahuna.Wire.Scripts;

/// <summary>
/// The value of a <see cref="CommandKind.Script"/>, decoded in place.
/// <code>
/// offset  0  u32  length of the text
///         4  u16  parameters
///         6  u16  reserved, 0
///         8  the text, UTF-8
///         …  each parameter: u8 length of the name, the name, the value (<see cref="ScriptValue"/>)
/// </code>
/// </summary>
internal ref struct ScriptBody
{
    public const int HeaderBytes = 8;

    /// <summary>
    /// Most bytes of the text. Every node parses a new one within the loop of its partition, which is some milliseconds
    /// of work for this many; the language itself allows more (<see cref="ScriptProgram.TextBytesMax"/>).
    /// </summary>
    public const int TextBytesMax = 16 * 1024;

    /// <summary>Most parameters.</summary>
    public const int ParametersMax = 256;

    /// <summary>Most bytes of a parameter's name.</summary>
    public const int NameBytesMax = 64;

    /// <summary>Most bytes of the parameters together.</summary>
    public const int ParameterBytesMax = 1 << 20;

    /// <summary>Parameters that are compared one by one.</summary>
    private const int FewParameters = 8;

    private const string Malformed = "the script is malformed";

    /// <summary>The text, UTF-8.</summary>
    public ReadOnlySpan<byte> Text;

    private int _count;
    private ReadOnlySpan<byte> _parameters;

    /// <summary>Why the value of a command is refused; null when it is a body.</summary>
    public static string? Refusal(ReadOnlySpan<byte> value)
    {
        if (!TryRead(value, out ScriptBody body) || !Utf8.IsValid(body.Text))
        {
            return Malformed;
        }

        return SizeRefusal(body.Text.Length, body._count, body._parameters.Length)
            ?? (body.TryReadParameters(out _) ? null : Malformed);
    }

    /// <summary>Decodes header and text. False when the lengths do not add up.</summary>
    public static bool TryRead(ReadOnlySpan<byte> source, out ScriptBody body)
    {
        body = default;
        if (source.Length < HeaderBytes || source[6] != 0 || source[7] != 0)
        {
            return false;
        }

        uint length = BinaryPrimitives.ReadUInt32LittleEndian(source);
        if (length > (uint)(source.Length - HeaderBytes))
        {
            return false;
        }

        body._count = BinaryPrimitives.ReadUInt16LittleEndian(source[4..]);
        body.Text = source.Slice(HeaderBytes, (int)length);
        body._parameters = source[(HeaderBytes + (int)length)..];
        return true;
    }

    /// <summary>Decodes the parameters. False when they are malformed, or one is given twice.</summary>
    public readonly bool TryReadParameters(out ScriptParameter[] parameters)
    {
        parameters = [];
        if (_count > ParametersMax)
        {
            return false;
        }

        ScriptParameter[] read = new ScriptParameter[_count];
        HashSet<string>? names = _count > FewParameters ? new(_count, StringComparer.Ordinal) : null;
        ReadOnlySpan<byte> rest = _parameters;
        for (int i = 0; i < read.Length; i++)
        {
            if (rest.IsEmpty || rest[0] == 0 || rest[0] > NameBytesMax || rest.Length <= rest[0])
            {
                return false;
            }

            ReadOnlySpan<byte> name = rest.Slice(1, rest[0]);
            rest = rest[(1 + name.Length)..];
            if (!Utf8.IsValid(name) || !ScriptValue.TryRead(ref rest, out ScriptValue value))
            {
                return false;
            }

            read[i] = new ScriptParameter(Encoding.UTF8.GetString(name), value);
            if (names is null ? IsNamed(read.AsSpan(0, i), read[i].Name) : !names.Add(read[i].Name))
            {
                return false;
            }
        }

        parameters = read;
        return rest.IsEmpty;
    }

    private static bool IsNamed(ReadOnlySpan<ScriptParameter> parameters, string name)
    {
        foreach (ScriptParameter parameter in parameters)
        {
            if (parameter.Name == name)
            {
                return true;
            }
        }

        return false;
    }

    /// <summary>True for a text that no command may carry.</summary>
    public static bool IsLong(string text) => Encoding.UTF8.GetByteCount(text) > TextBytesMax;

    /// <summary>Appends a body, or says why it is refused; then nothing is appended.</summary>
    public static string? Write(ByteBuffer target, string text, IReadOnlyList<ScriptParameter> parameters)
    {
        ByteBuffer values = ByteBuffer.Rent();
        try
        {
            foreach (ScriptParameter parameter in parameters)
            {
                int length = Encoding.UTF8.GetByteCount(parameter.Name);
                if (length is 0 or > NameBytesMax)
                {
                    return string.Create(
                        CultureInfo.InvariantCulture,
                        $"the name of parameter \"{parameter.Name}\" has {length:N0} bytes; it must have 1 to "
                            + $"{NameBytesMax}");
                }

                values.Take(1)[0] = (byte)length;
                Encoding.UTF8.GetBytes(parameter.Name, values.Take(length));
                parameter.Value.Write(values);
            }

            int textLength = Encoding.UTF8.GetByteCount(text);
            if (SizeRefusal(textLength, parameters.Count, values.Length) is { } refusal)
            {
                return refusal;
            }

            Span<byte> header = target.Take(HeaderBytes);
            header.Clear();
            BinaryPrimitives.WriteInt32LittleEndian(header, textLength);
            BinaryPrimitives.WriteUInt16LittleEndian(header[4..], (ushort)parameters.Count);
            Encoding.UTF8.GetBytes(text, target.Take(textLength));
            target.Append(values.Written);
            return null;
        }
        finally
        {
            values.Return();
        }
    }

    private static string? SizeRefusal(int textLength, int count, int parameterBytes)
    {
        if (textLength > TextBytesMax)
        {
            return TooLarge("the text", textLength, TextBytesMax);
        }

        if (parameterBytes > ParameterBytesMax)
        {
            return TooLarge("the list of parameters", parameterBytes, ParameterBytesMax);
        }

        return count <= ParametersMax ? null : string.Create(
            CultureInfo.InvariantCulture, $"the script has {count:N0} parameters; the limit is {ParametersMax}");
    }

    private static string TooLarge(string what, int bytes, int bytesMax) => string.Create(
        CultureInfo.InvariantCulture, $"{what} of the script has {bytes:N0} bytes; the limit is {bytesMax:N0}");
}
