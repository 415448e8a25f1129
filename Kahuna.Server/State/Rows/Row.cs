using System.Globalization;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// Number of a row of the state, from 1 on; the same on every member. What a row stands for is said by its name. The
/// default, <see cref="None"/>, is no row. A value.
/// </summary>
internal readonly record struct Row(int Value)
{
    /// <summary>No row.</summary>
    public static readonly Row None;

    /// <summary>The first row.</summary>
    public static readonly Row First = new(1);

    /// <summary>True for <see cref="None"/>.</summary>
    public bool IsNone => Value == 0;

    /// <summary>The row with the next number.</summary>
    public Row Next => new(Value + 1);

    public static bool operator <(Row a, Row b) => a.Value < b.Value;

    public static bool operator >(Row a, Row b) => a.Value > b.Value;

    public static bool operator <=(Row a, Row b) => a.Value <= b.Value;

    public static bool operator >=(Row a, Row b) => a.Value >= b.Value;

    public override string ToString() => Value.ToString(CultureInfo.InvariantCulture);
}
