using System.Buffers;
using System.Globalization;
using System.Text.Unicode;

namespace Kahuna.Wire.Scripts.Running;

/// <summary>
/// The functions. They see entries as their values, except for those about keys. Texts are counted in Unicode code
/// points. None depends on a culture, and none on the last digit of a mathematical library. Stateless, any thread.
/// </summary>
internal static class Functions
{
    /// <summary>Calls a function.</summary>
    /// <exception cref="ScriptFailure">A type or a value is wrong, or the budget is exceeded.</exception>
    public static ScriptValue Call(ScriptFunction function, ScriptValue[] arguments, ScriptMeter meter)
    {
        ScriptValue first = arguments[0].Plain;
        meter.Work(first.Cost);
        return function switch
        {
            ScriptFunction.Abs or ScriptFunction.Pow or ScriptFunction.Round or ScriptFunction.Ceil
                or ScriptFunction.Floor or ScriptFunction.Min or ScriptFunction.Max =>
                Mathematics.Call(function, arguments, meter),
            ScriptFunction.IsInteger => Is(first, ScriptValueKind.Integer),
            ScriptFunction.IsDouble => Is(first, ScriptValueKind.Double),
            ScriptFunction.IsText => Is(first, ScriptValueKind.String),
            ScriptFunction.IsBoolean => Is(first, ScriptValueKind.Bool),
            ScriptFunction.IsNull => Is(first, ScriptValueKind.Null),
            ScriptFunction.IsArray => Is(first, ScriptValueKind.Array),
            ScriptFunction.IsBytes => Is(first, ScriptValueKind.Bytes),
            ScriptFunction.ToInteger or ScriptFunction.ToDouble or ScriptFunction.ToText or ScriptFunction.ToBoolean
                or ScriptFunction.ToBytes => Casts.Call(function, first, meter),
            ScriptFunction.ToJson => meter.Made(ScriptValue.OfText(ScriptText.Json(first, meter))),
            ScriptFunction.Count => ScriptValue.Of((long)Array(first, "count").Count),
            ScriptFunction.Revision => ScriptValue.Of(AccessMachine.RevisionOf(Entry(arguments[0], "rev"))),
            ScriptFunction.Expires => ScriptValue.Of(Entry(arguments[0], "expires").ExpiresInMs),
            _ => Texts.Call(function, arguments, meter),
        };
    }

    private static ScriptValue Is(ScriptValue value, ScriptValueKind kind) => ScriptValue.Of(value.Kind == kind);

    private static IReadOnlyList<ScriptValue> Array(ScriptValue value, string user) =>
        value.Kind == ScriptValueKind.Array
            ? value.Items
            : throw new ScriptFailure($"{user} needs an array, but got {ScriptText.NameOf(value)}");

    private static ScriptValue Entry(ScriptValue value, string user) => value.Kind == ScriptValueKind.Entry
        ? value
        : throw new ScriptFailure(
            $"{user} needs a value that a read returned, but got {ScriptText.NameOf(value)}");
}

/// <summary>Conversions between types. Stateless, any thread.</summary>
internal static class Casts
{
    /// <summary>Converts a value.</summary>
    /// <exception cref="ScriptFailure">It cannot be converted.</exception>
    public static ScriptValue Call(ScriptFunction function, ScriptValue value, ScriptMeter meter) => function switch
    {
        ScriptFunction.ToInteger => ToInteger(value),
        ScriptFunction.ToDouble => ToDouble(value),
        ScriptFunction.ToBoolean => ToBoolean(value),
        ScriptFunction.ToBytes => meter.Made(ScriptValue.Of(Bytes(value))),
        _ => ToText(value, meter),
    };

    private static ScriptValue ToInteger(ScriptValue value) => value.Kind switch
    {
        ScriptValueKind.Integer => value,
        ScriptValueKind.Bool => ScriptValue.Of(value.AsBool ? 1L : 0L),
        ScriptValueKind.Double when Math.Abs(value.AsDouble) < 9e18 => ScriptValue.Of((long)value.AsDouble),
        ScriptValueKind.String when !HasNul(value) && long.TryParse(
            value.AsString, NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture, out long number) =>
            ScriptValue.Of(number),
        _ => throw Cannot(value, "an integer"),
    };

    private static ScriptValue ToDouble(ScriptValue value) => value.Kind switch
    {
        ScriptValueKind.Double => value,
        ScriptValueKind.Integer => ScriptValue.Of((double)value.AsInteger),
        ScriptValueKind.String when !HasNul(value) && double.TryParse(
            value.AsString,
            NumberStyles.AllowLeadingSign | NumberStyles.AllowDecimalPoint | NumberStyles.AllowExponent,
            CultureInfo.InvariantCulture,
            out double number) => Numbers.Finite(number),
        _ => throw Cannot(value, "a double"),
    };

    /// <summary>.NET's parsers pass over zeros at the end of a text.</summary>
    private static bool HasNul(ScriptValue value) => value.AsBytes.Span.Contains((byte)0);

    private static ScriptValue ToBoolean(ScriptValue value) => value.Kind switch
    {
        ScriptValueKind.Bool => value,
        ScriptValueKind.Integer => ScriptValue.Of(value.AsInteger != 0),
        ScriptValueKind.String when value.AsString is "true" or "1" => ScriptValue.Of(true),
        ScriptValueKind.String when value.AsString is "false" or "0" => ScriptValue.Of(false),
        _ => throw Cannot(value, "a boolean"),
    };

    private static ScriptValue ToText(ScriptValue value, ScriptMeter meter) => value.Kind switch
    {
        ScriptValueKind.String => value,
        ScriptValueKind.Bytes when Utf8.IsValid(value.AsBytes.Span) =>
            meter.Made(ScriptValue.OfText(value.AsBytes)),
        _ => ScriptText.Of(value) is { } text
            ? meter.Made(ScriptValue.OfText(text))
            : throw Cannot(value, "a string"),
    };

    private static ReadOnlyMemory<byte> Bytes(ScriptValue value) => value.Kind == ScriptValueKind.Bytes
        ? value.AsBytes
        : ScriptText.Of(value) ?? throw Cannot(value, "bytes");

    private static ScriptFailure Cannot(ScriptValue value, string type)
    {
        string shown = value.Kind == ScriptValueKind.String && value.AsBytes.Length <= 40
            ? $"\"{value.AsString}\""
            : ScriptText.NameOf(value);
        return new ScriptFailure($"{shown} cannot be made {type}");
    }
}

/// <summary>Functions of numbers. Stateless, any thread.</summary>
internal static class Mathematics
{
    private const int DigitsMax = 15;

    /// <summary>Calls a function.</summary>
    /// <exception cref="ScriptFailure">A type or a value is wrong.</exception>
    public static ScriptValue Call(ScriptFunction function, ScriptValue[] arguments, ScriptMeter meter)
    {
        ScriptValue first = arguments[0].Plain;
        switch (function)
        {
            case ScriptFunction.Abs:
                return first.Kind == ScriptValueKind.Integer
                    ? first.AsInteger < 0 ? Numbers.Negate(first) : first
                    : ScriptValue.Of(Math.Abs(Number(first, "abs")));
            case ScriptFunction.Pow:
                return Pow(first, arguments[1].Plain, meter);
            case ScriptFunction.Min or ScriptFunction.Max:
                return Extreme(arguments, isMax: function == ScriptFunction.Max, meter);
            case ScriptFunction.Round when first.Kind == ScriptValueKind.Double:
                return Round(first.AsDouble, arguments.Length > 1 ? Digits(arguments[1].Plain) : 0);
            case ScriptFunction.Ceil when first.Kind == ScriptValueKind.Double:
                return ScriptValue.Of(Math.Ceiling(first.AsDouble));
            case ScriptFunction.Floor when first.Kind == ScriptValueKind.Double:
                return ScriptValue.Of(Math.Floor(first.AsDouble));
            default:
                Number(first, function == ScriptFunction.Round ? "round" : "ceil and floor");
                return first;
        }
    }

    private static ScriptValue Extreme(ScriptValue[] arguments, bool isMax, ScriptMeter meter)
    {
        ScriptValue best = arguments[0].Plain;
        Number(best, "min and max");
        foreach (ScriptValue argument in arguments)
        {
            meter.Step();
            ScriptValue value = argument.Plain;
            Number(value, "min and max");
            int order = Comparison.Compare(value, best);
            if (isMax ? order > 0 : order < 0)
            {
                best = value;
            }
        }

        return best;
    }

    private static ScriptValue Pow(ScriptValue @base, ScriptValue exponent, ScriptMeter meter)
    {
        Number(@base, "pow");
        if (exponent.Kind != ScriptValueKind.Integer || exponent.AsInteger < 0)
        {
            throw new ScriptFailure("pow needs an integer exponent of 0 or greater");
        }

        ScriptValue result = @base.Kind == ScriptValueKind.Integer ? ScriptValue.Of(1L) : ScriptValue.Of(1.0);
        ScriptValue square = @base;
        for (long left = exponent.AsInteger; left > 0; left >>= 1)
        {
            meter.Step();
            if ((left & 1) != 0)
            {
                result = Numbers.Apply(ScriptOperator.Multiply, result, square);
            }

            if (left > 1)
            {
                square = Numbers.Apply(ScriptOperator.Multiply, square, square);
            }
        }

        return result;
    }

    private static ScriptValue Round(double value, int digits)
    {
        // A decimal holds 28 digits: what is larger has no digits behind the point anyway.
        return ScriptValue.Of(Math.Abs(value) < 1e12
            ? (double)Math.Round((decimal)value, digits, MidpointRounding.AwayFromZero)
            : digits == 0 ? Math.Truncate(value) : value);
    }

    private static int Digits(ScriptValue value) =>
        value.Kind == ScriptValueKind.Integer && value.AsInteger is >= 0 and <= DigitsMax
            ? (int)value.AsInteger
            : throw new ScriptFailure($"round needs 0 to {DigitsMax} digits");

    private static double Number(ScriptValue value, string user) => Numbers.TryToDouble(value, out double number)
        ? number
        : throw new ScriptFailure($"{user} needs a number, but got {ScriptText.NameOf(value)}");
}

/// <summary>Functions of texts. Stateless, any thread.</summary>
internal static class Texts
{
    /// <summary>Calls a function.</summary>
    /// <exception cref="ScriptFailure">A type or a value is wrong, or the budget is exceeded.</exception>
    public static ScriptValue Call(ScriptFunction function, ScriptValue[] arguments, ScriptMeter meter)
    {
        ReadOnlySpan<byte> text = function == ScriptFunction.Concat ? default : Text(arguments[0]).Span;
        switch (function)
        {
            case ScriptFunction.Concat:
                return Concat(arguments, meter);
            case ScriptFunction.Upper or ScriptFunction.Lower:
                return Made(Ascii(text.ToArray(), function == ScriptFunction.Upper), meter);
            case ScriptFunction.Length:
                return ScriptValue.Of((long)CountOf(text));
            case ScriptFunction.Trim:
                return Made(Trimmed(text).ToArray(), meter);
            case ScriptFunction.Substring:
                return Made(Substring(text, arguments), meter);
            case ScriptFunction.StartsWith:
                return ScriptValue.Of(text.StartsWith(Text(arguments[1]).Span));
            case ScriptFunction.EndsWith:
                return ScriptValue.Of(text.EndsWith(Text(arguments[1]).Span));
            case ScriptFunction.IndexOf:
                int at = IndexOf(text, Text(arguments[1]).Span, meter);
                return ScriptValue.Of(at < 0 ? -1L : CountOf(text[..at]));
            default:
                return Split(text, Text(arguments[1]).Span, meter);
        }
    }

    private static ScriptValue Concat(ScriptValue[] arguments, ScriptMeter meter)
    {
        ArrayBufferWriter<byte> target = new();
        foreach (ScriptValue argument in arguments)
        {
            ReadOnlySpan<byte> part = Shown(argument.Plain).Span;
            if (target.WrittenCount + part.Length > meter.BytesLeft)
            {
                meter.Bytes(target.WrittenCount + part.Length);
            }

            target.Write(part);
        }

        return meter.Made(ScriptValue.OfText(target.WrittenMemory));
    }

    private static ReadOnlyMemory<byte> Shown(ScriptValue value) => ScriptText.Of(value)
        ?? throw new ScriptFailure($"concat needs strings, numbers or booleans, but got {ScriptText.NameOf(value)}");

    private static byte[] Substring(ReadOnlySpan<byte> text, ScriptValue[] arguments)
    {
        long start = Integer(arguments[1]);
        long length = arguments.Length > 2 ? Integer(arguments[2]) : long.MaxValue;
        if (start < 0 || length < 0)
        {
            throw new ScriptFailure("substring needs a start and a length of 0 or greater");
        }

        int from = OffsetOf(text, start);
        ReadOnlySpan<byte> rest = text[from..];
        return rest[..OffsetOf(rest, length)].ToArray();
    }

    /// <summary>The offset of the code point with a number, from 0; the length when there are fewer.</summary>
    private static int OffsetOf(ReadOnlySpan<byte> text, long points)
    {
        int at = 0;
        for (; points > 0 && at < text.Length; points--)
        {
            at++;
            while (at < text.Length && (text[at] & 0xC0) == 0x80)
            {
                at++;
            }
        }

        return at;
    }

    private static int CountOf(ReadOnlySpan<byte> text)
    {
        int count = 0;
        foreach (byte unit in text)
        {
            count += (unit & 0xC0) == 0x80 ? 0 : 1;
        }

        return count;
    }

    private static int IndexOf(ReadOnlySpan<byte> text, ReadOnlySpan<byte> part, ScriptMeter meter)
    {
        meter.Work((long)text.Length * Math.Max(1, part.Length / 64));
        return text.IndexOf(part);
    }

    private static ScriptValue Split(ReadOnlySpan<byte> text, ReadOnlySpan<byte> separator, ScriptMeter meter)
    {
        if (separator.IsEmpty)
        {
            throw new ScriptFailure("split needs a separator that is not empty");
        }

        List<ScriptValue> parts = [];
        while (true)
        {
            int at = IndexOf(text, separator, meter);
            meter.Step();
            parts.Add(Made((at < 0 ? text : text[..at]).ToArray(), meter));
            if (at < 0)
            {
                return meter.Made(ScriptValue.Of(parts.ToArray()));
            }

            text = text[(at + separator.Length)..];
        }
    }

    private static byte[] Ascii(byte[] text, bool upper)
    {
        for (int i = 0; i < text.Length; i++)
        {
            bool changes = upper ? text[i] is >= (byte)'a' and <= (byte)'z' : text[i] is >= (byte)'A' and <= (byte)'Z';
            text[i] ^= changes ? (byte)0x20 : (byte)0;
        }

        return text;
    }

    private static ReadOnlySpan<byte> Trimmed(ReadOnlySpan<byte> text) => text.Trim(" \t\r\n"u8);

    private static ScriptValue Made(byte[] text, ScriptMeter meter) => meter.Made(ScriptValue.OfText(text));

    private static ReadOnlyMemory<byte> Text(ScriptValue value) => value.Plain.Kind == ScriptValueKind.String
        ? value.Plain.AsBytes
        : throw new ScriptFailure($"the function needs a string, but got {ScriptText.NameOf(value)}");

    private static long Integer(ScriptValue value) => value.Plain.Kind == ScriptValueKind.Integer
        ? value.Plain.AsInteger
        : throw new ScriptFailure($"the function needs an integer, but got {ScriptText.NameOf(value)}");
}
