using System.Globalization;

namespace Kahuna.Wire.Scripts.Running;

/// <summary>The operators, given plain values. Stateless, any thread.</summary>
internal static class Operators
{
    /// <summary>Applies an operator with two operands that are both evaluated.</summary>
    /// <exception cref="ScriptFailure">A type or a value is wrong.</exception>
    public static ScriptValue Apply(ScriptOperator symbol, ScriptValue left, ScriptValue right, ScriptMeter meter) =>
        symbol switch
        {
            >= ScriptOperator.Equal and <= ScriptOperator.GreaterOrEqual =>
                ScriptValue.Of(Comparison.Apply(symbol, left, right, meter)),
            ScriptOperator.Range => Range(left, right, meter),
            ScriptOperator.Index => Item(left, right),
            _ => Numbers.Apply(symbol, left, right),
        };

    /// <summary>Applies an operator with one operand.</summary>
    /// <exception cref="ScriptFailure">The type is wrong.</exception>
    public static ScriptValue Apply(ScriptOperator symbol, ScriptValue value) => symbol == ScriptOperator.Not
        ? ScriptValue.Of(!Boolean(value, "'not'"))
        : Numbers.Negate(value);

    /// <summary>The boolean that <paramref name="user"/> needs.</summary>
    /// <exception cref="ScriptFailure">It is something else.</exception>
    public static bool Boolean(ScriptValue value, string user) => value.Kind == ScriptValueKind.Bool
        ? value.AsBool
        : throw new ScriptFailure($"{user} needs a boolean, but got {ScriptText.NameOf(value)}");

    private static ScriptValue Range(ScriptValue first, ScriptValue last, ScriptMeter meter)
    {
        if (first.Kind != ScriptValueKind.Integer || last.Kind != ScriptValueKind.Integer)
        {
            throw new ScriptFailure(
                $"'..' needs two integers, but got {ScriptText.NameOf(first)} and {ScriptText.NameOf(last)}");
        }

        decimal length = Math.Max(0, (decimal)last.AsInteger - first.AsInteger + 1);
        meter.Range(length);
        meter.Work((long)length);
        meter.Bytes(((long)length + 1) * ScriptValue.Null.Cost);
        ScriptValue[] items = new ScriptValue[(int)length];
        for (int i = 0; i < items.Length; i++)
        {
            items[i] = ScriptValue.Of(first.AsInteger + i);
        }

        return ScriptValue.Of(items);
    }

    private static ScriptValue Item(ScriptValue array, ScriptValue index)
    {
        if (array.Kind != ScriptValueKind.Array || index.Kind != ScriptValueKind.Integer)
        {
            throw new ScriptFailure(
                $"an index needs an array and an integer, but got {ScriptText.NameOf(array)} and "
                + ScriptText.NameOf(index));
        }

        long at = index.AsInteger;
        return at >= 0 && at < array.Items.Count
            ? array.Items[(int)at]
            : throw new ScriptFailure(string.Create(
                CultureInfo.InvariantCulture, $"the array of {array.Items.Count} items has no item {at}"));
    }
}
