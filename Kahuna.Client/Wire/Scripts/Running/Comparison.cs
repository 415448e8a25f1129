namespace Kahuna.Wire.Scripts.Running;

/// <summary>
/// Equality and order. Numbers compare by their exact values, strings by their UTF-8. Stateless, any thread.
/// </summary>
internal static class Comparison
{
    /// <summary>Applies <c>= != &lt; &lt;= &gt; &gt;=</c> to plain values.</summary>
    /// <exception cref="ScriptFailure">The types do not go together.</exception>
    public static bool Apply(ScriptOperator symbol, ScriptValue left, ScriptValue right, ScriptMeter meter)
    {
        meter.Work(Math.Min(left.Cost, right.Cost));
        return symbol switch
        {
            ScriptOperator.Equal => AreEqual(left, right),
            ScriptOperator.NotEqual => !AreEqual(left, right),
            ScriptOperator.Less => Compare(left, right) < 0,
            ScriptOperator.LessOrEqual => Compare(left, right) <= 0,
            ScriptOperator.Greater => Compare(left, right) > 0,
            _ => Compare(left, right) >= 0,
        };
    }

    /// <summary>Compares two numbers or two strings.</summary>
    /// <exception cref="ScriptFailure">They are something else.</exception>
    public static int Compare(ScriptValue left, ScriptValue right) =>
        left.Kind == ScriptValueKind.String && right.Kind == ScriptValueKind.String
            ? left.AsBytes.Span.SequenceCompareTo(right.AsBytes.Span)
            : CompareNumbers(left, right) ?? throw CannotCompare(left, right);

    private static bool AreEqual(ScriptValue left, ScriptValue right)
    {
        (left, right) = (left.Plain, right.Plain);
        if (left.Kind == ScriptValueKind.Null || right.Kind == ScriptValueKind.Null)
        {
            return left.Kind == right.Kind;
        }

        if (CompareNumbers(left, right) is { } order)
        {
            return order == 0;
        }

        return left.Kind != right.Kind ? throw CannotCompare(left, right) : left.Kind switch
        {
            ScriptValueKind.Bool => left.AsBool == right.AsBool,
            ScriptValueKind.Array => AreEqual(left.Items, right.Items),
            _ => left.AsBytes.Span.SequenceEqual(right.AsBytes.Span),
        };
    }

    private static bool AreEqual(IReadOnlyList<ScriptValue> left, IReadOnlyList<ScriptValue> right)
    {
        bool areEqual = left.Count == right.Count;
        for (int i = 0; areEqual && i < left.Count; i++)
        {
            areEqual = AreEqual(left[i], right[i]);
        }

        return areEqual;
    }

    private static int? CompareNumbers(ScriptValue left, ScriptValue right) => (left.Kind, right.Kind) switch
    {
        (ScriptValueKind.Integer, ScriptValueKind.Integer) => left.AsInteger.CompareTo(right.AsInteger),
        (ScriptValueKind.Double, ScriptValueKind.Double) => left.AsDouble.CompareTo(right.AsDouble),
        (ScriptValueKind.Integer, ScriptValueKind.Double) => Numbers.Compare(left.AsInteger, right.AsDouble),
        (ScriptValueKind.Double, ScriptValueKind.Integer) => -Numbers.Compare(right.AsInteger, left.AsDouble),
        _ => null,
    };

    private static ScriptFailure CannotCompare(ScriptValue left, ScriptValue right) =>
        new($"{ScriptText.NameOf(left)} cannot be compared with {ScriptText.NameOf(right)}");
}
