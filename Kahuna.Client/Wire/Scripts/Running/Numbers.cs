namespace Kahuna.Wire.Scripts.Running;

/// <summary>
/// Arithmetic. Integers overflow into an error; an operation on doubles whose result is not finite is an error. Only
/// the four basic operations of IEEE 754 are used, which give the same bits on every machine. Stateless, any thread.
/// </summary>
internal static class Numbers
{
    /// <summary>The error of a result outside 64 bits.</summary>
    public static ScriptFailure Overflow() => new("the result is not an integer of 64 bits");

    /// <summary>Applies <c>+ - * / %</c>.</summary>
    /// <exception cref="ScriptFailure">A type is wrong, or there is no such number.</exception>
    public static ScriptValue Apply(ScriptOperator symbol, ScriptValue left, ScriptValue right)
    {
        if (left.Kind == ScriptValueKind.Integer && right.Kind == ScriptValueKind.Integer)
        {
            return ScriptValue.Of(OfIntegers(symbol, left.AsInteger, right.AsInteger));
        }

        if (symbol == ScriptOperator.Remainder)
        {
            throw new ScriptFailure(
                $"'%' needs two integers, but got {ScriptText.NameOf(left)} and {ScriptText.NameOf(right)}");
        }

        if (!TryToDouble(left, out double a) || !TryToDouble(right, out double b))
        {
            throw new ScriptFailure(
                $"'{SignOf(symbol)}' needs two numbers, but got {ScriptText.NameOf(left)} and "
                + ScriptText.NameOf(right));
        }

        if (symbol == ScriptOperator.Divide && b == 0)
        {
            throw DivisionByZero();
        }

        return Finite(symbol switch
        {
            ScriptOperator.Add => a + b,
            ScriptOperator.Subtract => a - b,
            ScriptOperator.Multiply => a * b,
            _ => a / b,
        });
    }

    /// <summary>Unary minus.</summary>
    /// <exception cref="ScriptFailure">The value is no number, or the smallest integer.</exception>
    public static ScriptValue Negate(ScriptValue value) => value.Kind switch
    {
        ScriptValueKind.Integer when value.AsInteger == long.MinValue => throw Overflow(),
        ScriptValueKind.Integer => ScriptValue.Of(-value.AsInteger),
        ScriptValueKind.Double => ScriptValue.Of(-value.AsDouble),
        _ => throw new ScriptFailure($"'-' needs a number, but got {ScriptText.NameOf(value)}"),
    };

    /// <summary>The value of an integer or a double as a double.</summary>
    public static bool TryToDouble(ScriptValue value, out double number)
    {
        number = value.Kind switch
        {
            ScriptValueKind.Integer => value.AsInteger,
            ScriptValueKind.Double => value.AsDouble,
            _ => 0,
        };
        return value.Kind is ScriptValueKind.Integer or ScriptValueKind.Double;
    }

    /// <summary>A double, unless it is infinite or no number.</summary>
    /// <exception cref="ScriptFailure">It is not finite.</exception>
    public static ScriptValue Finite(double result) => double.IsFinite(result)
        ? ScriptValue.Of(result)
        : throw new ScriptFailure("the result is not a finite double");

    /// <summary>Compares an integer with a double by their exact values.</summary>
    public static int Compare(long left, double right)
    {
        const double TwoTo63 = 9223372036854775808.0;
        if (right >= TwoTo63)
        {
            return -1;
        }

        if (right < -TwoTo63)
        {
            return 1;
        }

        // The whole part fits now, and the rest decides only if the whole parts are equal.
        long whole = (long)right;
        return left != whole ? left.CompareTo(whole) : 0.0.CompareTo(right - whole);
    }

    private static long OfIntegers(ScriptOperator symbol, long left, long right)
    {
        if (symbol is ScriptOperator.Divide or ScriptOperator.Remainder)
        {
            if (right == 0)
            {
                throw DivisionByZero();
            }

            if (right == -1)
            {
                return symbol == ScriptOperator.Remainder ? 0 : Negate(ScriptValue.Of(left)).AsInteger;
            }

            return symbol == ScriptOperator.Divide ? left / right : left % right;
        }

        Int128 result = symbol switch
        {
            ScriptOperator.Add => (Int128)left + right,
            ScriptOperator.Subtract => (Int128)left - right,
            _ => (Int128)left * right,
        };
        return result >= long.MinValue && result <= long.MaxValue ? (long)result : throw Overflow();
    }

    private static ScriptFailure DivisionByZero() => new("a number is divided by zero");

    private static string SignOf(ScriptOperator symbol) => symbol switch
    {
        ScriptOperator.Add => "+",
        ScriptOperator.Subtract => "-",
        ScriptOperator.Multiply => "*",
        _ => "/",
    };
}
